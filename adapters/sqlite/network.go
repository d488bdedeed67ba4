package sqlite

import "fmt"

// NetworkError refuses a database on a network file system.
type NetworkError struct {
	Path string
	Kind string // "NFS", "SMB", "FUSE"
}

func (e *NetworkError) Error() string {
	return fmt.Sprintf("%s is on %s, where SQLite's locks do not hold between machines: choose a folder on a local disk, or Postgres", e.Path, e.Kind)
}
