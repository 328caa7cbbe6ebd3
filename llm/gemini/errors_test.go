package gemini_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/gemini"
)

func TestTheWaitThatIsAskedForIsTakenUnlessItMakesNoSense(t *testing.T) {
	for said, want := range map[string]struct {
		wait time.Duration
		said bool
	}{
		"1.5s": {1500 * time.Millisecond, true}, "0s": {0, true}, "-5s": {0, false}, "soon": {0, false}, "99999999999999s": {0, false},
		"9000000000s": {100 * 365 * 24 * time.Hour, true},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"later","details":[{"@type":"RetryInfo","retryDelay":"`+said+`"}]}}`)
		}))
		_, err := gemini.New(gemini.Options{BaseURL: srv.URL}).Generate(t.Context(), &llm.Request{Model: "m", Messages: []*llm.Message{llm.UserText("go")}})
		srv.Close()
		if e := llm.AsError(err); e.Class != llm.ClassThrottled || e.RetryAfter != want.wait || e.HasRetryAfter != want.said {
			t.Errorf("%q: wait %s, %t: %v", said, e.RetryAfter, e.HasRetryAfter, err)
		}
	}
}

func TestWhatARelaySaysOfNothingIsNotTaken(t *testing.T) {
	for last, want := range map[string]llm.Usage{
		`{"promptTokenCount":0}`:                                                       {Input: 9, Output: 4, CacheRead: 5, Reasoning: 3},
		`{"promptTokenCount":0,"candidatesTokenCount":50}`:                             {Input: 9, Output: 53, CacheRead: 5, Reasoning: 3},
		`{"candidatesTokenCount":50,"thoughtsTokenCount":6}`:                           {Input: 9, Output: 56, CacheRead: 5, Reasoning: 6},
		`{"promptTokenCount":8,"candidatesTokenCount":50,"cachedContentTokenCount":6}`: {Input: 8, Output: 53, CacheRead: 6, Reasoning: 3},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `data: {"error":null,"candidates":[{"content":{"parts":[{"text":"hi"}]}}],"usageMetadata":{"promptTokenCount":7,`+
				`"toolUsePromptTokenCount":2,"cachedContentTokenCount":5,"candidatesTokenCount":1,"thoughtsTokenCount":3}}`+"\n\n"+
				`data: {"candidates":[{"content":{},"finishReason":"STOP"}],"usageMetadata":`+last+`}`+"\n\n")
		}))
		resp, err := gemini.New(gemini.Options{BaseURL: srv.URL}).Stream(t.Context(), &llm.Request{Model: "m", Messages: []*llm.Message{llm.UserText("go")}}, func(llm.Delta) {})
		srv.Close()
		if err != nil || resp.Parts.Text() != "hi" || resp.Usage != want {
			t.Errorf("%s: read as %+v, %v", last, resp, err)
		}
	}
}
