package wire

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// foreign reports whether the body is clearly not an answer: none of its lines belongs
// to a stream, or it is an HTML page by its type and content. The type alone does not
// decide, because proxies also rewrite the type of streams, which are charged.
func (x *Exchange) foreign(spoken bool) bool {
	head := x.head()
	switch {
	case len(head) == 0:
		return x.Response.StatusCode == http.StatusNoContent
	case bytes.HasPrefix([]byte(byteOrderMark), head):
		return false
	case x.lines:
		return true
	case head[0] == '{':
		member := withoutBlanks(head[1:])
		return len(member) > 0 && member[0] != '"' && member[0] != '}'
	}
	return !spoken || head[0] == '<' && x.calledPage()
}

// opaque reports whether a foreign body may nevertheless contain an answer in another
// form: a list of what a stream would contain, or lines of it, or compressed data.
func (x *Exchange) opaque() bool {
	return x.lines || bytes.HasPrefix(x.head(), []byte{'['}) || x.Response.Header.Get("Content-Encoding") != ""
}

// inLines reports whether a body is a sequence of objects, as Ollama's own API and
// others stream. A whole answer ends with its object, and a truncated one has no end.
func inLines(body []byte) bool {
	end := valueEnd(body, skipSpace(body, 0), 0)
	return end >= 0 && bytes.HasPrefix(withoutBlanks(body[end:]), []byte{'{'})
}

// head returns the beginning of the body, as far as it was kept.
func (x *Exchange) head() []byte { return withoutBlanks(x.begun.seen) }

// calledPage reports whether the answer's type is that of a page for people.
func (x *Exchange) calledPage() bool {
	return strings.HasPrefix(x.Response.Header.Get("Content-Type"), "text/html")
}

// notAnswered returns the error of a foreign answer: a login page, a proxy's message, a
// server without this API. A retry costs nothing and may succeed, for example after
// maintenance; but if the body may be a model's answer, each retry would be charged.
func (c *Client) notAnswered(x *Exchange, err error) *llm.Error {
	status, header, class := x.Response.StatusCode, x.Response.Header, llm.ClassNetwork
	if x.opaque() {
		class = llm.ClassInvalid
	}
	came := fmt.Sprintf("HTTP %d", status)
	for _, name := range [...]string{"Content-Type", "Content-Encoding"} {
		if value := header.Get(name); value != "" {
			came += fmt.Sprintf(", %s %s", name, x.quoted(value))
		}
	}
	began := "is empty"
	if head := x.head(); len(head) > 0 {
		began = "began with " + x.quoted(string(head))
	}
	return x.Redact(&llm.Error{
		Class: class, Provider: c.Provider, Status: status, RequestID: x.RequestID, Err: err,
		Message: fmt.Sprintf("what answered does not speak this API (%s): it %s; look at the base URL and at proxies on the way; asked was %s",
			came, began, plain(*x.Response.Request.URL)),
	})
}

// maxQuoted bounds how much an error quotes of a body that is not an error.
const maxQuoted = 200

// quoted returns the beginning of a text from an unknown sender, escaped. It cuts after
// redacting, because the redaction would miss half a credential, and drops an
// incomplete credential at the end of the text.
func (x *Exchange) quoted(text string) string {
	text = x.redact(text)
	for _, s := range x.secrets() {
		for n := min(len(s), len(text)); n >= minSecret; n-- {
			if half, cut := strings.CutSuffix(text, s[:n]); cut {
				text = half + redacted
				break
			}
		}
	}
	if len(text) <= maxQuoted {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q…", strings.ToValidUTF8(text[:maxQuoted], ""))
}
