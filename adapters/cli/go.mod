module github.com/mulligan-dev/mulligan/adapters/cli

go 1.26.0

replace github.com/mulligan-dev/mulligan => ../..
