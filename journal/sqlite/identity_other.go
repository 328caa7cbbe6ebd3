//go:build !linux

package sqlite

func readIdentity(path string) (identity, error) { return stat(path) }
