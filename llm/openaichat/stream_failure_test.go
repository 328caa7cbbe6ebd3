package openaichat_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/openaichat"
)

// A request that a service refuses within a stream, with nothing but the type of
// the error, would be refused again.
func TestStreamErrorWithoutStatusIsClassifiedByType(t *testing.T) {
	for body, want := range map[string]llm.Class{
		`{"error":{"message":"no such field","type":"invalid_request_error"}}`:                           llm.ClassInvalid,
		`{"error":{"message":"not this key","type":"authentication_error"}}`:                             llm.ClassAuth,
		`{"error":{"message":"not this model","type":"permission_error"}}`:                               llm.ClassAuth,
		`{"error":{"message":"later","type":"invalid_request_error","code":429}}`:                        llm.ClassThrottled,
		`{"object":"error","message":"no such field","type":"BadRequestError","param":null,"code":400}`:  llm.ClassInvalid,
		`{"object":"error","message":"maximum context length is 4","type":"BadRequestError","code":400}`: llm.ClassContextOverflow,
		`{"error":{"message":"later","code":429},"code":1302}`:                                           llm.ClassThrottled,
		`{"error":{"message":"not so","code":400},"code":500}`:                                           llm.ClassInvalid,
		`{"error":{"message":"too much","type":"server_error"}}`:                                         llm.ClassOverloaded,
		`{"error":{"message":"maximum context length","type":"invalid_request_error"}}`:                  llm.ClassContextOverflow,
		`{"error":{"message":"empty","type":"invalid_request_error","code":"insufficient_quota"}}`:       llm.ClassQuota,
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

// abrupt answers with a text, and then stays silent or breaks.
type abrupt struct {
	io.Reader
	then error
	ctx  context.Context
}

func (a *abrupt) RoundTrip(req *http.Request) (*http.Response, error) {
	a.ctx = req.Context()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(a), Request: req}, nil
}

func (a *abrupt) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if err == nil {
		return n, nil
	}
	if a.then == nil {
		<-a.ctx.Done()
		return n, a.ctx.Err()
	}
	return n, a.then
}

// What was paid for is not asked for again because the connection was not closed
// as it should be.
func TestAnswerWithReasonAndUsageIsCompleteOnAnyDisconnect(t *testing.T) {
	const text = `data: {"choices":[{"delta":{"content":"Hi"}}]}` + "\n\n"
	const reason = `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	const usage = `data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1}}` + "\n\n"
	for name, c := range map[string]struct {
		body  string
		then  error
		whole bool
	}{
		"reset":            {text + reason + usage, io.ErrUnexpectedEOF, true},
		"silent":           {text + reason + usage, nil, true},
		"without a usage":  {text + reason, io.ErrUnexpectedEOF, false},
		"without a reason": {text + usage, io.EOF, false},
		"silent, no usage": {text + reason, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := openaichat.New(openaichat.Options{HTTP: &http.Client{Transport: &abrupt{Reader: strings.NewReader(c.body), then: c.then}}})
				resp, err := m.Stream(t.Context(), &llm.Request{Model: "m", Messages: []*llm.Message{llm.UserText("go")}}, func(llm.Delta) {})
				if (err == nil) != c.whole || resp == nil || resp.Parts.Text() != "Hi" {
					t.Errorf("read as %+v, %v", resp, err)
				}
			})
		})
	}
}

func TestACountOfNothingIsNoReport(t *testing.T) {
	body := `data: {"choices":[{"delta":{"content":"Hi"}}],"usage":{"prompt_tokens":9,"completion_tokens":1,` +
		`"prompt_tokens_details":{"cached_tokens":5,"cache_write_tokens":3}}}` + "\n\n" +
		`data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":0,"completion_tokens":2,"completion_tokens_details":{"reasoning_tokens":1}}}` + "\n\n" +
		`data: {"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0,` +
		`"prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}` + "\n\n"
	m := openaichat.New(openaichat.Options{HTTP: &http.Client{Transport: &abrupt{Reader: strings.NewReader(body), then: io.EOF}}})
	resp, err := m.Stream(t.Context(), &llm.Request{Model: "m", Messages: []*llm.Message{llm.UserText("go")}}, func(llm.Delta) {})
	if err != nil || resp.Usage != (llm.Usage{Input: 9, Output: 2, CacheRead: 5, CacheWrite: 3, Reasoning: 1}) {
		t.Errorf("read as %+v, %v", resp, err)
	}
}
