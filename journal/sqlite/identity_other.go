//go:build !linux

package sqlite

func look(path string) (identity, error) { return stat(path) }
