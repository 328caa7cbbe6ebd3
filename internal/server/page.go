package server

import (
	"github.com/pawlrun/pawl/event"
)

// markup is the document of the page, and bundled one of its files.
type (
	markup  string
	bundled string
)

// showPage returns the page, which loads its data itself.
func (s *Server) showPage(a *apiRequest[none, none]) (markup, error) {
	s.page.Index(a.w, a.Request)
	return "", errAnswered
}

func (s *Server) showAsset(a *apiRequest[none, none]) (bundled, error) {
	name := a.PathValue("name")
	if !s.page.Asset(a.w, a.Request, name) {
		return "", kindNotFound.problem("load the page again: it is another version's", "the page has no file %q", name)
	}
	return "", errAnswered
}

// showPrincipal returns the principal of the request.
func (s *Server) showPrincipal(a *apiRequest[none, none]) (event.Principal, error) {
	return principalOf(a.Context()), nil
}
