module github.com/mulligan-dev/mulligan/adapters/systemd

go 1.26.0

require (
	github.com/coreos/go-systemd/v22 v22.7.0
	github.com/godbus/dbus/v5 v5.2.4
)

require (
	github.com/gofrs/flock v0.13.2 // indirect
	github.com/google/uuid v1.6.0 // indirect
)

require (
	github.com/mulligan-dev/mulligan v0.0.0-00010101000000-000000000000
	golang.org/x/sys v0.50.0
)

replace github.com/mulligan-dev/mulligan => ../..
