//go:build amd64 || arm64

package sandbox

func offerListener(port int) error { return nil }
