module github.com/mulligan-dev/mulligan

go 1.26.0
