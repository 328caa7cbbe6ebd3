package wire

import "strings"

// Endpoint is the address of a path behind a base URL. A query of either stays
// one: a gateway may take its key there. The official SDKs do not agree on one in
// a base URL (some write the path behind it, some leave it out), so that nobody
// who relies on it is let down.
func Endpoint(base, path string) string {
	base, _, _ = strings.Cut(base, "#")
	base, given, _ := strings.Cut(base, "?")
	path, own, _ := strings.Cut(path, "?")
	address := strings.TrimRight(base, "/") + path
	if query := strings.Trim(given+"&"+own, "&"); query != "" {
		address += "?" + query
	}
	return address
}
