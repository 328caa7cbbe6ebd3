package server

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// How many things a page of a list has.
const (
	pageDefault = 50
	pageMost    = 500
)

// query is what a list is asked for.
type query struct {
	limit  int
	cursor string
	values url.Values
}

// readQuery reads limit, cursor and the parameters that a path takes beside
// them. An error is a [*Problem].
func readQuery(r *http.Request, also ...string) (query, error) {
	const next = "a list takes limit, cursor and what its path adds to them"
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return query{}, kindQuery.problem(next, "the query cannot be read: %v", err)
	}
	q := query{limit: pageDefault, values: values}
	for name, given := range values {
		switch {
		case name != "limit" && name != "cursor" && !slices.Contains(also, name):
			return q, kindQuery.problem(next, "there is no parameter %q", name)
		case len(given) > 1 && !slices.Contains(also, name):
			return q, kindQuery.problem(next, "the parameter %q is given %d times", name, len(given))
		}
	}
	q.cursor = values.Get("cursor")
	if text := values.Get("limit"); values.Has("limit") {
		q.limit, err = strconv.Atoi(text)
		if err != nil || q.limit < 1 || q.limit > pageMost {
			return q, kindQuery.problem("give a whole number from 1 to "+strconv.Itoa(pageMost), "limit is %q", text)
		}
	}
	return q, nil
}

// noSuchPlace is the problem of a cursor that a list cannot go on after.
func noSuchPlace(thing, cursor string) *Problem {
	return kindQuery.problem("give the next of a page, or leave the cursor out to begin anew", "the cursor %q is no %s to go on after; it may have been removed", cursor, thing)
}
