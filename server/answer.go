package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
)

// list is one page of a list; Next is the cursor of the page after it.
type list[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// pageOf is the first page of what is left of a list, of which place gives the
// cursor that stands for an element.
func pageOf[T any](left []T, limit int, place func(T) string) list[T] {
	if len(left) <= limit {
		return list[T]{Items: append([]T{}, left...)}
	}
	return list[T]{Items: left[:limit], Next: place(left[limit-1])}
}

// fail answers with a problem.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := *problemOf(err)
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		p = *kindClosed.problem("keep the connection open, in both directions, until the answer is there", "the client closed the connection, or its own half of it")
	}
	p.Instance = r.URL.Path
	if p.Status >= http.StatusInternalServerError {
		s.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	s.encode(w, r, p)
}

// answer answers with a value as JSON.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	s.encode(w, r, v)
}

func (s *Server) encode(w http.ResponseWriter, r *http.Request, v any) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		s.log.Debug("answer not delivered", "path", r.URL.Path, "error", err)
	}
}
