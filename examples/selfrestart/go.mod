module github.com/mulligan-dev/mulligan/examples/selfrestart

go 1.26.0

replace (
	github.com/mulligan-dev/mulligan => ../..
	github.com/mulligan-dev/mulligan/adapters/systemd => ../../adapters/systemd
)

require (
	github.com/mulligan-dev/mulligan v0.0.0-00010101000000-000000000000
	github.com/mulligan-dev/mulligan/adapters/systemd v0.0.0-00010101000000-000000000000
)

require (
	github.com/coreos/go-systemd/v22 v22.7.0 // indirect
	github.com/godbus/dbus/v5 v5.2.4 // indirect
	github.com/gofrs/flock v0.13.2 // indirect
	github.com/google/uuid v1.6.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
)
