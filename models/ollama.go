package models

import (
	"cmp"
	"net"
	"strings"
)

// ollamaURL returns the address of Ollama's compatible API. OLLAMA_HOST may lack the
// scheme and the port, and on the server's own machine it is the server's listening
// address.
func ollamaURL(host string) string {
	scheme, rest, ok := strings.Cut(cmp.Or(strings.TrimSpace(host), "127.0.0.1"), "://")
	if !ok {
		scheme, rest = "http", scheme
	}
	rest, query, _ := strings.Cut(rest, "?")
	address, path, _ := strings.Cut(rest, "/")
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		name, port = strings.Trim(address, "[]"), defaultPort(scheme, ok)
	}
	if name == "" || name == "0.0.0.0" || name == "::" {
		name = "127.0.0.1"
	}
	base := scheme + "://" + net.JoinHostPort(name, port)
	if path = strings.Trim(path, "/"); path != "" {
		base += "/" + path
	}
	if base += "/v1"; query != "" {
		base += "?" + query
	}
	return base
}

func defaultPort(scheme string, given bool) string {
	switch {
	case given && scheme == "https":
		return "443"
	case given && scheme == "http":
		return "80"
	}
	return "11434"
}
