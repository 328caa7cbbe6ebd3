package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// list is one page of a list; Next is the cursor of the page after it.
type list[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// pageOf returns the first page of the rest of a list. place returns the cursor
// text of an element. The cursor contains the list's name, so it is not valid for
// another list.
func pageOf[T any](name string, left []T, limit int, place func(T) string) list[T] {
	if len(left) <= limit {
		return list[T]{Items: append([]T{}, left...)}
	}
	return list[T]{Items: left[:limit], Next: name + ":" + place(left[limit-1])}
}

// pageIn returns the page of a whole list that a query selects; thing names its
// elements in errors.
func pageIn[T any](name, thing string, all []T, p paging, place func(T) string) (list[T], error) {
	last, err := p.after(name)
	if err != nil {
		return list[T]{}, err
	}
	from := slices.IndexFunc(all, func(each T) bool { return place(each) == last }) + 1
	if from == 0 && last != "" {
		return list[T]{}, noSuchPlace(thing, last)
	}
	return pageOf(name, all[from:], p.limit(), place), nil
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
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if p.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(p.retryAfter.Seconds())))
	}
	var v any = p
	if strings.HasPrefix(r.URL.Path, rondoPaths) {
		v = refusalOf(p, err)
	}
	s.write(w, r, p.Status, "application/problem+json", v)
}

// write sends a value as JSON.
func (s *Server) write(w http.ResponseWriter, r *http.Request, status int, contentType string, v any) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(body.Len()))
	control := http.NewResponseController(w)
	// A reader that has stopped reading must not delay the server's shutdown. The
	// answer is sent completely within this deadline.
	defer context.AfterFunc(s.running, func() { _ = control.SetWriteDeadline(time.Now().Add(lastWrite)) })()
	w.WriteHeader(status)
	if err == nil {
		_, err = w.Write(body.Bytes())
	}
	if err == nil {
		err = control.Flush()
	}
	if err != nil {
		s.log.Debug("answer not delivered", "path", r.URL.Path, "error", err)
	}
}
