package wire

import "net/http"

// Header returns the headers of every request to a service: the adapter's own except
// empty ones, and further ones, which override them.
func Header(own, further map[string]string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"pawl"}}
	for name, value := range own {
		if value != "" {
			h.Set(name, value)
		}
	}
	for name, value := range further {
		h.Set(name, value)
	}
	return h
}

// Bearer returns the value of an Authorization header, "" without a token.
func Bearer(token string) string {
	if token == "" {
		return ""
	}
	return "Bearer " + token
}

// Accepting returns the header with an Accept value, unless it has one. It does not
// change the header, which all requests share.
func Accepting(h http.Header, kind string) http.Header {
	if h.Get("Accept") != "" {
		return h
	}
	h = h.Clone()
	h.Set("Accept", kind)
	return h
}
