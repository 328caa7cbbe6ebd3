//go:build !linux

package sqlite

// vfsName is the file system of connections: SQLite's own.
const vfsName = ""

func registerVFS() error { return nil }
