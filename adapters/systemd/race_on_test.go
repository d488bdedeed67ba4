//go:build race

package systemd

const raceEnabled = true
