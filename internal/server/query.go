package server

import (
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
)

// Sizes of a page of a list.
const (
	pageDefault = 50
	pageMost    = 500
)

// size is the number of items of a page: from 1 to [pageMost].
type size int

// longestWait is the longest time in seconds to wait for an answer.
const longestWait = 300

// seconds is a time: from 1 to [longestWait] seconds.
type seconds int

// paging holds the parameters of every list.
type paging struct {
	Limit  size   `json:"limit,omitempty" jsonschema:"how many items a page has at most"`
	Cursor string `json:"cursor,omitempty" jsonschema:"the next of the page before"`
}

// limit returns the number of items of a page.
func (p paging) limit() int {
	if p.Limit == 0 {
		return pageDefault
	}
	return int(p.Limit)
}

// after returns the place of the cursor in a list, "" for the beginning.
func (p paging) after(name string) (place string, err error) {
	place, is := strings.CutPrefix(p.Cursor, name+":")
	if p.Cursor != "" && (!is || place == "") {
		return "", kindQuery.problem("give the next of a page of this list, or leave the cursor out to start from the beginning", "the cursor %q is none of this list", p.Cursor)
	}
	return place, nil
}

// readQuery reads the parameters of a request into the fields of a struct, by their
// names in JSON. Every parameter must be known, and only a list may occur several
// times. An error is a [*Problem].
func readQuery(r *http.Request, into any) error {
	fields := fieldsOf(into)
	names := make([]string, len(fields))
	byName := map[string]reflect.Value{}
	for i, f := range fields {
		names[i], byName[f.name] = f.name, reflect.ValueOf(f.into).Elem()
	}
	next := "this path takes no parameters"
	if len(names) > 0 {
		next = "its parameters are " + strings.Join(names, ", ")
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return kindQuery.problem(next, "the query cannot be read: %v", err)
	}
	for name, given := range values {
		field, known := byName[name]
		switch {
		case !known:
			return kindQuery.problem(next, "there is no parameter %q", name)
		case len(given) > 1 && field.Kind() != reflect.Slice:
			return kindQuery.problem(next, "the parameter %q is given %d times", name, len(given))
		}
		if expected, ok := setParameter(field, given); !ok {
			return kindQuery.problem("give "+expected, "%s is %q", name, given[0])
		}
	}
	return nil
}

// setParameter sets a field to the value of a parameter, or returns what is
// expected of it.
func setParameter(field reflect.Value, given []string) (expected string, ok bool) {
	switch v := field.Addr().Interface().(type) {
	case *size:
		n, err := strconv.Atoi(given[0])
		*v = size(n)
		return fmt.Sprintf("a whole number from 1 to %d", pageMost), err == nil && n >= 1 && n <= pageMost
	case *seconds:
		n, err := strconv.Atoi(given[0])
		*v = seconds(n)
		return fmt.Sprintf("a whole number of seconds from 1 to %d", longestWait), err == nil && n >= 1 && n <= longestWait
	case *bool:
		*v = given[0] == "true"
		return "true or false", *v || given[0] == "false"
	case *string:
		*v = given[0]
		return "", true
	}
	list := reflect.MakeSlice(field.Type(), len(given), len(given))
	for i, text := range given {
		list.Index(i).SetString(text)
	}
	field.Set(list)
	return "", true
}

// noSuchPlace returns the problem of a cursor that is not in a list.
func noSuchPlace(thing, cursor string) *Problem {
	return kindQuery.problem("give the next of a page, or leave the cursor out to start from the beginning", "the cursor %q is not a known %s; it may have been removed", cursor, thing)
}
