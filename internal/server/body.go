package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxBody bounds a request's body: an agent file may have 1 MiB, plus the input.
const maxBody = 4 << 20

// field is one key that a body may have.
type field struct {
	name string
	// into receives the value; it is unchanged if the key is missing.
	into any
	// expected describes a valid value.
	expected string
}

// fieldsOf returns the fields of a struct, including embedded ones, by their names
// in JSON. The description in a field's schema is what is expected of it.
func fieldsOf(into any) []field {
	v := reflect.ValueOf(into).Elem()
	var out []field
	for _, f := range reflect.VisibleFields(v.Type()) {
		if f.Anonymous {
			continue
		}
		value := v.FieldByIndex(f.Index)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, field{name, value.Addr().Interface(), f.Tag.Get("jsonschema")})
	}
	return out
}

// readBody reads the JSON object of a request's body; a missing or empty body is an
// object without keys. An error is a [*Problem].
func readBody(r *http.Request, fields ...field) error {
	if r.ContentLength == 0 && r.Header.Get("Content-Type") == "" {
		return nil
	}
	if given := r.Header.Get("Content-Type"); !isJSON(given) {
		return kindMediaType.problem("send the header Content-Type: application/json", "the Content-Type is %q", given)
	}
	body, err := wholeBody(r)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil // each missing key is reported below
	}
	return decodeObject(body, fields)
}

// maxDrain bounds how much of a body that is too large is read. If the server
// closes the connection while the client still sends, the connection is reset and
// the answer is lost.
const maxDrain = 64 << 20

// wholeBody reads a body that is not too large. An error is a [*Problem].
func wholeBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, kindBody.problem("send the whole body", "the body could not be read: %v", err)
	}
	if len(body) > maxBody {
		_, _ = io.CopyN(io.Discard, r.Body, maxDrain) // the answer is the same if this fails
		return nil, kindTooLarge.problem("send less", "the body has more than %d bytes", maxBody)
	}
	return body, nil
}

func isJSON(contentType string) bool {
	media, params, err := mime.ParseMediaType(contentType)
	charset := params["charset"]
	return err == nil && media == "application/json" && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

// decodeObject reads one JSON object strictly: every key must be known, spelled
// exactly, and occur once. An error is a [*Problem].
func decodeObject(body []byte, fields []field) error {
	expected := keysOf(fields)
	bad := func(pointer, format string, args ...any) error {
		return kindBody.problem("send one JSON object; "+expected, format, args...).at(pointer)
	}
	if !utf8.Valid(body) {
		return bad("", "the body is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	switch first, err := dec.Token(); {
	case err != nil:
		return bad("", "the body is no JSON: %v", err)
	case first != json.Delim('{'):
		return bad("", "the body is no object")
	}
	given := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return bad("", "the body is no JSON: %v", err)
		}
		name, _ := token.(string)
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
		switch pointer := pointerTo(name); {
		case i < 0:
			return bad(pointer, "there is no key %q", name)
		case given[name]:
			return bad(pointer, "the key %q is given twice", name)
		}
		given[name] = true
		if err := decodeField(dec, fields[i]); err != nil {
			return bad(pointerTo(name), "%v", err)
		}
	}
	if _, err := dec.Token(); err != nil {
		return bad("", "the body is no JSON: %v", noEOF(err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return bad("", "something follows the object")
	}
	return nil
}

func decodeField(dec *json.Decoder, f field) error {
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return fmt.Errorf("the body is no JSON: %w", noEOF(err))
	}
	if string(raw) == "null" || json.Unmarshal(raw, f.into) != nil {
		return fmt.Errorf("%s is not %s", f.name, f.expected)
	}
	return nil
}

// texts is an object of strings: each name occurs once, and no value is missing.
type texts map[string]string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *texts) UnmarshalJSON(raw []byte) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if first, err := dec.Token(); err != nil || first != json.Delim('{') {
		return errors.New("no object")
	}
	*t = texts{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		value, err := dec.Token()
		if err != nil {
			return err
		}
		text, isText := value.(string)
		if _, twice := (*t)[name.(string)]; twice || !isText {
			return fmt.Errorf("%s is no text, or there twice", name)
		}
		(*t)[name.(string)] = text
	}
	return nil
}

// noEOF turns the error of a truncated text into io.ErrUnexpectedEOF.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func keysOf(fields []field) string {
	if len(fields) == 0 {
		return "this path takes no keys"
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name + " (" + f.expected + ")"
	}
	return "its keys are " + strings.Join(names, ", ")
}

// pointerTo returns the JSON Pointer (RFC 6901) of a key of the body.
func pointerTo(key string) string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// missing returns the problem of a body without a required key.
func missing(key, next string) error {
	return kindBody.problem(next, "%s is missing", key).at(pointerTo(key))
}
