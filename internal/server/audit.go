package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// Audit is the journal's record of a request that was refused or that changed
// something. The content of a command to a run is in the run's own journal.
type Audit struct {
	Principal event.Principal `json:"principal,omitzero"`
	// Operation is the method and the path; Remote is the client's address.
	Operation string `json:"operation"`
	Remote    string `json:"remote,omitempty"`
	Status    int    `json:"status,omitempty"`
	// Refused is the reason of a refusal.
	Refused string `json:"refused,omitempty"`
}

// audited is how long the journal keeps an audit record.
const audited = 90 * 24 * time.Hour

// refusals bounds how many refusals of one client the journal keeps, so that
// repeated requests do not fill it.
func refusals() rate { return rate{100, 0.1} }

// Keep writes an audit record to a journal.
func (a Audit) Keep(ctx context.Context, store journal.Store) error {
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	now := time.Now()
	_, _, err = store.Note(context.WithoutCancel(ctx), journal.Note{At: now, Expires: now.Add(audited), Body: body})
	return err
}

// audit records the result of a request.
func (s *Server) audit(r *http.Request, status int, refused string) {
	a := Audit{Principal: principalOf(r.Context()), Operation: r.Method + " " + r.URL.Path, Remote: r.RemoteAddr, Status: status, Refused: refused}
	if err := a.Keep(r.Context(), s.store); err != nil {
		s.log.Error("a request is not in the audit", "operation", a.Operation, "principal", a.Principal.Name, "error", err)
	}
}

// auditing wraps an operation to record requests that may change something.
func (s *Server) auditing(o operation, answer handler) handler {
	if o.method != http.MethodPost {
		return answer
	}
	return func(w http.ResponseWriter, r *http.Request, status int) error {
		seen := &answerCopy{ResponseWriter: w, status: status}
		if err := answer(seen, r, status); err != nil {
			s.fail(seen, r, err)
		}
		s.audit(r, seen.status, "")
		return nil
	}
}

// audit is a numbered audit record.
type audit struct {
	ID int64     `json:"id"`
	At time.Time `json:"at"`
	Audit
}

// listAudit lists refused requests and changes, newest first.
func (s *Server) listAudit(a *apiRequest[paging, none]) (list[audit], error) {
	page := list[audit]{Items: []audit{}}
	before := int64(0)
	last, err := a.query.after("audit")
	if err != nil {
		return page, err
	}
	if last != "" {
		if before, err = strconv.ParseInt(last, 10, 64); err != nil || before < 1 {
			return page, noSuchPlace("number of this list", last)
		}
	}
	notes, err := s.store.Notes(a.Context(), before, a.query.limit()+1)
	if err != nil {
		return page, err
	}
	part := pageOf("audit", notes, a.query.limit(), func(n journal.Note) string { return strconv.FormatInt(n.ID, 10) })
	for _, n := range part.Items {
		item := audit{ID: n.ID, At: n.At}
		if err := json.Unmarshal(n.Body, &item.Audit); err != nil {
			return page, err
		}
		page.Items = append(page.Items, item)
	}
	page.Next = part.Next
	return page, nil
}
