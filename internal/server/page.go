package server

import (
	"github.com/pawlrun/pawl/event"
)

// markup is the document of the page, and bundled one of the files that it needs.
type (
	markup  string
	bundled string
)

// showPage gives the page, which asks for all that it shows.
func (s *Server) showPage(a *asked[none, none]) (markup, error) {
	s.page.Index(a.w, a.Request)
	return "", errAnswered
}

func (s *Server) showAsset(a *asked[none, none]) (bundled, error) {
	name := a.PathValue("name")
	if !s.page.Asset(a.w, a.Request, name) {
		return "", kindNotFound.problem("load the page again: it is another version's", "the page has no file %q", name)
	}
	return "", errAnswered
}

// whoAsks says who the server takes a client for.
func (s *Server) whoAsks(a *asked[none, none]) (event.Principal, error) {
	return principalOf(a.Context()), nil
}
