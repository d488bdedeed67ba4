//go:build !race

package systemd

const raceEnabled = false
