package wire

import "net/http"

// Header returns the headers of every request to a service: our own, of which
// those that are empty are left out, and further ones, which win.
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

// Bearer is the value of an Authorization header, "" without a token.
func Bearer(token string) string {
	if token == "" {
		return ""
	}
	return "Bearer " + token
}

// Accepting returns the header with what is accepted, unless it says already.
// The header itself is shared by all requests and stays as it is.
func Accepting(h http.Header, kind string) http.Header {
	if h.Get("Accept") != "" {
		return h
	}
	h = h.Clone()
	h.Set("Accept", kind)
	return h
}
