package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"time"

	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/journal"
)

// remembered is how long a key identifies a request.
const remembered = 24 * time.Hour

// keyForm is an Idempotency-Key.
var keyForm = regexp.MustCompile(`^[\x21-\x7e]{1,255}$`)

// request is the journal's record of a request with an Idempotency-Key.
type request struct {
	// Digest is the digest of the operation, the path and the body.
	Digest string `json:"digest"`
	// Run is the id reserved for the run that the request creates, so that repeated
	// requests create it once.
	Run    string          `json:"run"`
	Answer *answeredBefore `json:"answer,omitempty"`
}

// answeredBefore is the stored answer of a request.
type answeredBefore struct {
	Status   int    `json:"status"`
	Type     string `json:"type"`
	Location string `json:"location,omitempty"`
	Body     []byte `json:"body"`
}

// idempotent gives a request with an Idempotency-Key the answer that it received
// before. The key is in the journal before the operation starts, and the answer
// after it. If a process died in between, the operation is performed again if
// repeating it is harmless; otherwise the answer is that the outcome is unknown.
func (s *Server) idempotent(o operation, answer handler) handler {
	return func(w http.ResponseWriter, r *http.Request, status int) error {
		given, has := r.Header["Idempotency-Key"]
		if o.method != http.MethodPost || !has {
			return answer(w, r, status)
		}
		if len(given) != 1 || !keyForm.MatchString(given[0]) {
			return kindKey.problem("send one key of 1 to 255 visible characters", "the Idempotency-Key is %q", given)
		}
		body, err := wholeBody(r)
		if err != nil {
			return err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		key := principalOf(r.Context()).Name + " " + given[0]
		if _, begun := s.underway.LoadOrStore(key, true); begun {
			p := kindUnderway.problem("make the same request again in a second", "the first request with this Idempotency-Key has no answer yet")
			p.retryAfter = time.Second
			return p
		}
		defer s.underway.Delete(key)
		note, before, fresh, err := s.noteRequest(r, key, body)
		switch {
		case err != nil:
			return err
		case before.Digest != digestOf(r, body):
			return kindReused.problem("take another key for another request", "the Idempotency-Key came with another request before")
		case o.streams && wantsStream(r): // a stream is not stored; it starts again with the same run
			return answer(w, within(r, before), status)
		case before.Answer != nil:
			return s.answerAgain(w, r, *before.Answer)
		case !fresh && o.times == notTwice:
			return kindUnknown.problem("look at what the run's events say, and take another key", "the server ended while it answered the first request with this Idempotency-Key, so it may have been done or not")
		}
		return s.answerOnce(w, r, note, before, func(w http.ResponseWriter, r *http.Request) error { return answer(w, r, status) })
	}
}

// noteRequest records a request, or returns its existing record.
func (s *Server) noteRequest(r *http.Request, key string, body []byte) (note journal.Note, kept request, fresh bool, err error) {
	now := time.Now()
	text, err := json.Marshal(request{Digest: digestOf(r, body), Run: engine.NewID()})
	if err != nil {
		return note, kept, false, err
	}
	note, fresh, err = s.store.Note(context.WithoutCancel(r.Context()), journal.Note{Key: key, At: now, Expires: now.Add(remembered), Body: text})
	if err != nil {
		return note, kept, false, err
	}
	return note, kept, fresh, json.Unmarshal(note.Body, &kept)
}

// reservedKey is the context key of the id reserved for a request's run.
type reservedKey struct{}

// reserved returns the id reserved for the run of a request, "" for any.
func reserved(ctx context.Context) string {
	id, _ := ctx.Value(reservedKey{}).(string)
	return id
}

// within returns a request whose context reserves the id of kept.
func within(r *http.Request, kept request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), reservedKey{}, kept.Run))
}

// answerOnce answers a request and stores the answer. A server error is not stored,
// so the request may be repeated.
func (s *Server) answerOnce(w http.ResponseWriter, r *http.Request, note journal.Note, kept request, answer func(http.ResponseWriter, *http.Request) error) error {
	copied := &answerCopy{ResponseWriter: w, status: http.StatusOK, body: new(bytes.Buffer)}
	if err := answer(copied, within(r, kept)); err != nil {
		s.fail(copied, r, err)
	}
	var text []byte
	if copied.status < http.StatusInternalServerError {
		h := copied.Header()
		kept.Answer = &answeredBefore{copied.status, h.Get("Content-Type"), h.Get("Location"), copied.body.Bytes()}
		var err error
		if text, err = json.Marshal(kept); err != nil {
			return err
		}
	}
	if err := s.store.Amend(context.WithoutCancel(r.Context()), note.ID, text); err != nil && !errors.Is(err, journal.ErrNotFound) {
		s.log.Error("an answer was not kept", "path", r.URL.Path, "error", err)
	}
	return nil
}

// answerAgain sends the stored answer of a request.
func (s *Server) answerAgain(w http.ResponseWriter, r *http.Request, a answeredBefore) error {
	w.Header().Set("Idempotency-Replayed", "true")
	if a.Location != "" {
		w.Header().Set("Location", a.Location)
	}
	s.write(w, r, a.Status, a.Type, json.RawMessage(a.Body))
	return nil
}

func digestOf(r *http.Request, body []byte) string {
	sum := sha256.New()
	for _, part := range [][]byte{[]byte(r.Method), []byte(r.URL.RequestURI()), body} {
		_, _ = sum.Write(part)
		_, _ = sum.Write([]byte{0})
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// answerCopy records the status of an answer, and its body if there is a buffer for
// it.
type answerCopy struct {
	http.ResponseWriter
	status int
	body   *bytes.Buffer
}

// WriteHeader implements [http.ResponseWriter].
func (c *answerCopy) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (c *answerCopy) Write(b []byte) (int, error) {
	if c.body != nil {
		c.body.Write(b)
	}
	return c.ResponseWriter.Write(b)
}

// Unwrap supports [http.ResponseController].
func (c *answerCopy) Unwrap() http.ResponseWriter { return c.ResponseWriter }
