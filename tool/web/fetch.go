package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

func (o Options) run(ctx context.Context, c tool.Call, a args) (tool.Result, error) {
	t, err := parse(a.URL)
	switch {
	case err != nil:
		return tool.Result{}, &tool.Error{Type: event.ErrorInvalidArgs, Message: "url: " + err.Error(), Err: err, NothingCame: true}
	case a.MaxChars < 0:
		return tool.Result{}, &tool.Error{Type: event.ErrorInvalidArgs, Message: fmt.Sprintf("max_chars must not be negative, and is %d", a.MaxChars), NothingCame: true}
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout-c.Spent)
	defer cancel()
	for range o.MaxRedirects + 1 {
		page, next, err := o.fetch(ctx, t, c, a)
		if err != nil {
			return tool.Result{}, o.failure(ctx, t, err)
		}
		if next == nil {
			return page, nil
		}
		moved, err := check(next)
		switch {
		case err != nil:
			return tool.Result{}, &tool.Error{Type: event.ErrorTool, Message: t.url.String() + " sends the reader to an address that is not fetched: " + err.Error()}
		case moved.host == t.host && t.url.Scheme == "https" && moved.url.Scheme == "http":
			return tool.Result{}, &tool.Error{Type: event.ErrorTool, Message: t.url.String() + " sends the reader to " + moved.url.String() + ", which is not encrypted"}
		case !sameService(t, moved):
			return elsewhere(t, moved), nil
		}
		t = moved
	}
	return tool.Result{}, &tool.Error{
		Type: event.ErrorTool, Message: fmt.Sprintf("the page sends the reader on more than %d times; the last address was %s", o.MaxRedirects, t.url),
	}
}

// sameService reports whether a redirect stays on the machine and port by which the
// call was judged. A server may redirect plain HTTP to HTTPS.
func sameService(from, to target) bool {
	encrypted := from.url.Scheme == "http" && from.port == 80 && to.url.Scheme == "https" && to.port == 443
	return from.host == to.host && (from.port == to.port || encrypted)
}

// elsewhere returns the result for a page that has moved to another machine or port,
// which needs a separate call and decision.
func elsewhere(from, to target) tool.Result {
	where := "another machine"
	if from.host == to.host {
		where = "another port"
	}
	return tool.Result{Output: fmt.Sprintf("%s has moved to %s and was not followed there. Its address is now:\n%s\n"+
		"Call %s with that address if you still want the page.", from.url, where, to.url, Name)}
}

// fetch requests one address. It returns the page, or where the page has moved to.
func (o Options) fetch(ctx context.Context, t target, c tool.Call, a args) (tool.Result, *url.URL, error) {
	fail := func(err error) (tool.Result, *url.URL, error) { return tool.Result{}, nil, err }
	if _, err := o.Egress.Host(t.host, t.port); err != nil {
		return fail(refused(err))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url.String(), nil)
	if err != nil {
		return fail(err)
	}
	req.Header.Set("User-Agent", o.UserAgent)
	req.Header.Set("Accept", "text/html, text/plain, application/json, application/xml, text/*;q=0.9, */*;q=0.1")
	req.Header.Set("Accept-Encoding", "gzip")
	proxy, err := o.Proxy(req)
	if err != nil {
		return fail(fmt.Errorf("the proxy for it: %w", err))
	}
	if proxy != nil {
		if _, err := o.reachable(ctx, t.host, t.port); err != nil {
			return fail(err)
		}
	}
	transport := o.transport(proxy)
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if next, err := location(resp, t); next != nil || err != nil {
		return tool.Result{}, next, err
	}
	if err := busy(resp); err != nil {
		return fail(err)
	}
	p, err := o.body(resp, c.Redact)
	if err != nil {
		return fail(err)
	}
	result, err := o.result(ctx, p, t, resp, c, a)
	return result, nil, err
}

// location returns where a page has moved to, nil if it has not.
func location(resp *http.Response, t target) (*url.URL, error) {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	to := resp.Header.Get("Location")
	if to == "" || len(to) > maxURL {
		return nil, &tool.Error{Type: event.ErrorTool, Message: fmt.Sprintf("%s answers %s and does not say where to", t.url, resp.Status)}
	}
	next, err := t.url.Parse(to)
	if err != nil {
		return nil, &tool.Error{Type: event.ErrorTool, Message: fmt.Sprintf("%s answers %s with an address that cannot be read", t.url, resp.Status)}
	}
	return next, nil
}

// busy returns the error of a server that may answer a later attempt.
func busy(resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	default:
		return nil
	}
	err := &tool.Error{Type: event.ErrorTool, Message: "the server answers " + status(resp), NothingCame: true}
	if seconds, parseErr := strconv.Atoi(resp.Header.Get("Retry-After")); parseErr == nil && seconds >= 0 {
		return tool.TransientAfter(err, min(time.Duration(seconds), 24*60*60)*time.Second)
	}
	return tool.Transient(err)
}

func status(resp *http.Response) string {
	return strings.TrimSpace(strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode))
}

// failure returns the error of a fetch, in words for the model. If the error names only
// the machine that the call named, no data came from it. Another attempt has the rest
// of the time, so there is none after its end.
func (o Options) failure(ctx context.Context, t target, err error) error {
	if typed, ok := errors.AsType[*tool.Error](err); ok && typed.Type == event.ErrorTimeout {
		return typed
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &tool.Error{Type: event.ErrorTimeout, Message: fmt.Sprintf("%s did not answer within %s", t.host, o.Timeout), NothingCame: true}
	}
	if typed, ok := errors.AsType[*tool.Error](err); ok {
		if transient, ok := errors.AsType[*tool.TransientError](err); ok {
			return transient
		}
		return typed
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return &tool.Error{Type: event.ErrorNotFound, Message: "there is no machine of the name " + t.host, Err: err, NothingCame: true}
	}
	e := &tool.Error{Type: event.ErrorTool, Message: fmt.Sprintf("%s could not be fetched: %v", t.url, err), Err: err}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		e.Message, e.NothingCame = fmt.Sprintf("%s could not be reached: %v", t.host, op), true
	}
	return e
}
