package wire

import "strings"

// Endpoint returns the address of a path below a base URL. The query of either is kept:
// a gateway may expect its key there. The official SDKs disagree on a query in a base
// URL (some append the path to it, some drop it), so this works for the users of both.
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
