package server

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/rules/access"
)

// operation is one thing that the server can be asked. The table of all is what the
// router, the authoriser and the document are made from.
type operation struct {
	method, path string
	// event is the name that it has over Socket.IO, "" for what is not asked there.
	event string
	// summary says in one line what it does.
	summary string
	// may is the least role that may ask it.
	may access.Role
	// status is that of an answer; also are others that it may have.
	status int
	also   []int
	// streams reports whether who accepts text/event-stream gets the items one by one.
	streams bool
	// times is whether a request may be made again of which nobody knows whether it was
	// done.
	times times
	// problems are those that it may have beside those that all may have.
	problems []kind
	service
}

// times is how often an operation may be done for one request.
type times bool

// notTwice is for what does something each time.
const notTwice times = true

// service answers an operation, with the types of what it takes and gives.
type service struct {
	query, body, answer reflect.Type
	handler             func(*Server) handler
}

// asked is one request for an operation.
type asked[Q, B any] struct {
	*http.Request
	w     http.ResponseWriter
	query Q
	body  B
	// status is that of the answer, unless it is that of the table.
	status int
}

// none is what an operation takes that has no parameters, or no body.
type none struct{}

// errAnswered is returned by what has written its answer itself.
var errAnswered = errors.New("server: answered already")

// serves is the service that a function does: it gets a request whose parameters
// and body were read strictly.
func serves[Q, B, A any](do func(*Server, *asked[Q, B]) (A, error)) service {
	return service{
		query: reflect.TypeFor[Q](), body: reflect.TypeFor[B](), answer: reflect.TypeFor[A](),
		handler: func(s *Server) handler {
			return func(w http.ResponseWriter, r *http.Request, status int) error {
				a := asked[Q, B]{Request: r, w: w, status: status}
				if err := readQuery(r, &a.query); err != nil {
					return err
				}
				if r.Method == http.MethodPost {
					if err := readBody(r, fieldsOf(&a.body)...); err != nil {
						return err
					}
				}
				answer, err := do(s, &a)
				if err == nil {
					s.write(w, r, a.status, "application/json", answer)
				}
				if errors.Is(err, errAnswered) {
					return nil
				}
				return err
			}
		},
	}
}

// handler answers a request with a status, or returns why it cannot.
type handler func(w http.ResponseWriter, r *http.Request, status int) error

// String is the operation as a client asks for it.
func (o operation) String() string { return o.method + " " + o.path }

// pattern is the operation's path for the router, to which the root alone would be
// all paths.
func (o operation) pattern() string {
	if o.path == "/" {
		return "/{$}"
	}
	return o.path
}

// wrong is what keeps an operation out of a server: without a role everybody could
// ask it or nobody, and without types nobody would know how.
func (o operation) wrong() error {
	switch {
	case !o.may.Known():
		return fmt.Errorf("server: %s is for no role", o)
	case o.query == nil || o.body == nil || o.answer == nil || o.handler == nil:
		return fmt.Errorf("server: %s has no schema", o)
	case o.summary == "" || o.status == 0:
		return fmt.Errorf("server: %s says too little", o)
	}
	return nil
}

// all are the problems that an operation may have.
func (o operation) all() []kind {
	common := []kind{kindToken, kindForbidden, kindBusy, kindQuery, kindClosed, kindUnavailable, kindInternal}
	if strings.Contains(o.path, "{id}") {
		common = append(common, kindNotFound)
	}
	if o.method == http.MethodPost {
		common = append(common, kindMediaType, kindTooLarge, kindBody, kindKey, kindUnderway, kindReused, kindUnknown)
	}
	return append(common, o.problems...)
}

// routes are the operations by their paths. A path that there is says which methods
// it takes, any other where they are listed.
func (s *Server) routes(table []operation) (*http.ServeMux, error) {
	mux := http.NewServeMux()
	allowed := map[string][]string{}
	for _, o := range table {
		if err := o.wrong(); err != nil {
			return nil, err
		}
		allowed[o.pattern()] = append(allowed[o.pattern()], o.method)
		answer := s.auditing(o, s.once(o, o.handler(s)))
		mux.Handle(o.method+" "+o.pattern(), s.counted(o, func(w http.ResponseWriter, r *http.Request) {
			if err := access.Authorise(principalOf(r.Context()), o.may); err != nil {
				s.refuse(w, r, err)
			} else if err := answer(w, r, o.status); err != nil {
				s.fail(w, r, err)
			}
		}))
	}
	mux.Handle(socketPath, s.sockets)
	for path, methods := range allowed {
		slices.Sort(methods)
		takes := strings.Join(methods, ", ")
		mux.Handle(path, s.handle(func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Allow", takes)
			return kindMethod.problem("use "+takes, "%s takes no %s", r.URL.Path, r.Method)
		}))
	}
	mux.Handle("/", s.handle(func(_ http.ResponseWriter, r *http.Request) error {
		return kindNotFound.problem("the paths of this server are listed at /openapi.json", "there is nothing at %s", r.URL.Path)
	}))
	return mux, nil
}

// handle makes a handler of what returns why it cannot answer.
func (s *Server) handle(h func(w http.ResponseWriter, r *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			s.fail(w, r, err)
		}
	})
}
