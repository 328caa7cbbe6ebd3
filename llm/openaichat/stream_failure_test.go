package openaichat_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/openaichat"
)

// A request that a service refuses within a stream, with nothing but the type of
// the error, would be refused again.
func TestAFailureWithinAStreamIsClassifiedByItsTypeWhereItHasNoStatus(t *testing.T) {
	for body, want := range map[string]llm.Class{
		`{"error":{"message":"no such field","type":"invalid_request_error"}}`:                     llm.ClassInvalid,
		`{"error":{"message":"not this key","type":"authentication_error"}}`:                       llm.ClassAuth,
		`{"error":{"message":"not this model","type":"permission_error"}}`:                         llm.ClassAuth,
		`{"error":{"message":"later","type":"invalid_request_error","code":429}}`:                  llm.ClassThrottled,
		`{"error":{"message":"too much","type":"server_error"}}`:                                   llm.ClassOverloaded,
		`{"error":{"message":"maximum context length","type":"invalid_request_error"}}`:            llm.ClassContextOverflow,
		`{"error":{"message":"empty","type":"invalid_request_error","code":"insufficient_quota"}}`: llm.ClassQuota,
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: "+body+"\n\n")
		}))
		m := openaichat.New(openaichat.Options{BaseURL: srv.URL})
		_, err := m.Stream(context.Background(), &llm.Request{Model: "m", Messages: []*llm.Message{llm.UserText("go")}}, func(llm.Delta) {})
		srv.Close()
		if err == nil || llm.AsError(err).Class != want {
			t.Errorf("%s is read as %v, want %s", body, err, want)
		}
	}
}

// Its own chunks without the frame of a stream are as foreign as another API's.
func TestAStreamWithoutItsFrameIsNotAskedForTwice(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"choices":[{"delta":{"content":"Hi"}}]}`+"\n"+`{"choices":[{"delta":{},"finish_reason":"stop"}]}`+"\n")
	}))
	defer srv.Close()
	m := openaichat.New(openaichat.Options{BaseURL: srv.URL})
	resp, err := m.Stream(t.Context(), &llm.Request{Model: "m", Messages: []*llm.Message{llm.UserText("go")}}, func(llm.Delta) {})
	if err == nil || llm.AsError(err).Class != llm.ClassInvalid || resp == nil || resp.Parts.Text() != "Hi" {
		t.Errorf("read as %+v, %v", resp, err)
	}
}
