// Package agent is the machine of one agent: call the model, run the tools it asks for,
// feed the results back, and repeat until a stop condition of the owner is met. Its
// cycle is that of the design page: limits, model, calls, dispatch, termination, nudge.
package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/internal/rules/fence"
	"github.com/pawlrun/pawl/internal/rules/history"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/stop"
)

// Version names the machine's rules; a run's first event pins it.
const Version = "agent/1"

// Kind is the kind of the machine's runs, as files name it.
const Kind = "Agent"

// Config is everything that a run of an agent depends on. run.started stores it whole,
// so that a fold needs only the journal.
type Config struct {
	System string `json:"system,omitempty"`
	// Targets are the models to use: the first, then its fallbacks.
	Targets       []Target        `json:"targets"`
	MaxTokens     int             `json:"max_tokens,omitempty"`
	Temperature   *float64        `json:"temperature,omitempty"`
	Schema        json.RawMessage `json:"schema,omitempty"`
	ProviderTools []string        `json:"provider_tools,omitempty"`
	// Result is the tool whose arguments are the run's result, and without a call of
	// which the run does not end well; empty for none.
	Result string `json:"result,omitempty"`
	// ResultText also accepts a JSON object that is the whole text of an answer as the
	// result, if it matches Schema or else the schema of that tool.
	ResultText bool `json:"result_text,omitempty"`
	// AllText makes the text of all answers the final output, instead of the last
	// one's.
	AllText bool          `json:"all_text,omitempty"`
	Tools   []llm.ToolDef `json:"tools,omitempty"`
	// Hidden are the tools that are not offered, because policy would deny every call
	// of them.
	Hidden []HiddenTool  `json:"hidden,omitempty"`
	Limits budget.Limits `json:"limits"`
	// DefaultCap reports whether USDPerRun is the default cap in money.
	DefaultCap bool `json:"default_cap,omitempty"`
	// UnpricedBelow are the models without a known price of the agents that the run
	// offers: their cost counts here.
	UnpricedBelow []string         `json:"unpriced_below,omitempty"`
	Conditions    []stop.Condition `json:"conditions,omitempty"`
	OnLimit       OnLimit          `json:"on_limit,omitempty"`
	OnNoToolCall  OnNoToolCall     `json:"on_no_tool_call,omitempty"`
	// OnBudget maps a limit's name to what reaching it means; a limit without an entry
	// stops the run.
	OnBudget map[string]OnBudget `json:"on_budget,omitempty"`
	// OnDenied and OnRejected set what a refused call means.
	OnDenied   OnRefusedCall `json:"on_denied,omitempty"`
	OnRejected OnRefusedCall `json:"on_rejected,omitempty"`
	// FailureThreshold is how many calls in a row may fail, each in its own way, before
	// the run ends, if they came from at least FailureAnswers answers; 0 means no
	// limit. Before WithDefaults 0 means unset, and [budget.None] no limit.
	FailureThreshold int    `json:"failure_threshold,omitempty"`
	FailureAnswers   int    `json:"failure_answers,omitempty"`
	NudgeText        string `json:"nudge_text,omitempty"`
	// MaxNudges bounds the nudges in a row after cycles without a call; 0 leaves only
	// the cycle cap. Before WithDefaults 0 means unset, and [budget.None] no limit.
	MaxNudges int          `json:"max_nudges,omitempty"`
	Dispatch  Dispatch     `json:"tool_dispatch,omitempty"`
	Policy    policy.Rules `json:"policy"`
	Approve   ApproveMode  `json:"approve,omitempty"`
	// Approvals bound how long a gated call waits.
	Approvals Approvals `json:"approvals,omitzero"`
	// Cache configures the providers' prompt caches.
	Cache llm.Caching `json:"cache,omitempty"`
	// Compact configures when and how the history becomes shorter.
	Compact compact.Settings `json:"compact,omitzero"`
	// CompactNow makes the history shorter before the first request, whatever its size.
	CompactNow bool `json:"compact_now,omitempty"`
	// Hooks are the owner's, in declared order.
	Hooks []Hook `json:"hooks,omitempty"`
	// NoStream requests whole answers instead of streams.
	NoStream bool `json:"whole,omitempty"`
	// StallTimeout is how long a stream may be silent; 0 is the adapters' default.
	StallTimeout time.Duration `json:"stall_timeout,omitempty"`
	// WindowCaps reports whether the cap on an answer leaves room for the input in the
	// window. Runs of older versions have no such rule.
	WindowCaps bool `json:"window_caps,omitempty"`
}

// HiddenTool is a tool that a run has but does not offer, with the rule that denies
// every call of it.
type HiddenTool struct {
	Tool string `json:"tool"`
	Rule string `json:"rule"`
}

// Target is one model of the chain with its known properties.
type Target struct {
	// Model is "provider/model".
	Model string `json:"model"`
	// Price is nil when no price is known; a local model costs 0.
	Price *llm.Price `json:"price,omitempty"`
	// ContextWindow is the model's in tokens, 0 if unknown.
	ContextWindow int `json:"context_window,omitempty"`
	// NoSchema reports whether the model is known not to answer by schema.
	NoSchema bool `json:"no_schema,omitempty"`
}

// WithDefaultCap caps the cost of a run without an explicit cap.
func (c Config) WithDefaultCap() Config {
	if l := &c.Limits; l.USDPerRun == 0 && l.MaxTotalCost <= 0 {
		l.USDPerRun, c.DefaultCap = budget.DefaultUSDPerRun, true
	}
	return c
}

// SetLimit replaces a limit, as [budget.Limits.Set] does. A cap in money replaces the
// default one, whichever of the two settings it is.
func (c *Config) SetLimit(setting string, value float64) error {
	if err := c.Limits.Set(setting, value); err != nil {
		return err
	}
	switch {
	case !c.DefaultCap:
	case setting == budget.CostPerRun:
		c.DefaultCap = false
	case budget.IsMoney(setting) && value > 0:
		c.Limits.USDPerRun, c.DefaultCap = 0, false
	}
	return nil
}

// Unpriced returns the models without a known price that a run, or an agent that it
// offers, may call.
func (c Config) Unpriced() []string {
	var names []string
	for _, t := range c.Targets {
		if t.Price == nil {
			names = append(names, t.Model)
		}
	}
	for _, model := range c.UnpricedBelow {
		if !slices.Contains(names, model) {
			names = append(names, model)
		}
	}
	return names
}

// OnLimit sets what reaching the cycle cap means for the caller.
type OnLimit string

// The values of on_limit.
const (
	OnLimitStopped OnLimit = "stopped"
	OnLimitOK      OnLimit = "ok"
	OnLimitFail    OnLimit = "fail"
)

// OnBudget sets what reaching a limit means.
type OnBudget = tree.OnBudget

// The values of budgets.actions.
const (
	BudgetStop = tree.BudgetStop
	BudgetOK   = tree.BudgetOK
	BudgetAsk  = tree.BudgetAsk
)

// OnNoToolCall sets what a cycle without tool calls means.
type OnNoToolCall string

// The values of on_no_tool_call.
const (
	NoToolCallFinish OnNoToolCall = "finish"
	NoToolCallNudge  OnNoToolCall = "nudge"
	NoToolCallStop   OnNoToolCall = "stop"
)

// ApproveMode sets how calls that need an approval get a decision.
type ApproveMode string

// The values of --approve, and those that only an agent file names.
const (
	// ApproveAsk asks here if possible; otherwise the run parks.
	ApproveAsk ApproveMode = "ask"
	// ApproveDeny rejects every gated call.
	ApproveDeny ApproveMode = "deny"
	// ApproveAll approves every gated call, and records that it did.
	ApproveAll ApproveMode = "all"
	// ApproveWait holds the call until a decision arrives from elsewhere; the
	// process keeps driving the run.
	ApproveWait ApproveMode = "wait"
	// ApprovePark does not ask here: the run parks, and the decision resumes it.
	ApprovePark ApproveMode = "park"
	// ApproveCallback asks here, and rejects the call if no answer or no decision is
	// possible.
	ApproveCallback ApproveMode = "callback"
	// ApproveBypass is ApproveAll by an agent file.
	ApproveBypass ApproveMode = "bypass"
)

// Approvals set how long a call waits for a decision, and what happens then.
type Approvals struct {
	// Seconds is the time for a decision; 0 means no limit.
	Seconds   float64   `json:"seconds,omitempty"`
	OnTimeout OnTimeout `json:"on_timeout,omitempty"`
}

// OnTimeout is what happens to a run when a question expires.
type OnTimeout = event.OnExpiry

// The values of approvals.on_timeout.
const (
	// TimeoutReject reports the expiry to the model, and the run continues.
	TimeoutReject = event.ExpiryRejects
	// TimeoutStop ends the run as rejected once the cycle has settled.
	TimeoutStop = event.ExpiryStops
)

// DefaultWaitSeconds is the default bound for [ApproveWait]: a process must not wait
// forever.
const DefaultWaitSeconds = 3600

// OnRefusedCall sets what a call means that policy denied or a person rejected.
type OnRefusedCall string

// The values of on_denied and on_rejected.
const (
	// RefusedContinue reports the refusal to the model, which may take another way.
	RefusedContinue OnRefusedCall = "continue"
	// RefusedStop ends the run once the calls beside it have settled: an agent that
	// tries something forbidden gets no second attempt.
	RefusedStop OnRefusedCall = "stop"
)

// Hook is one of the owner's hooks as the machine knows it: when it runs, and for which
// tools. The driver knows what it does.
//
// Hooks of a stage run one after the other, in declared order, and each gets the call as
// the hooks before it left it. Hooks can only restrict a call: policy judges what they
// leave, and a hook's question does not overrule a denial.
type Hook struct {
	Stage event.HookStage `json:"stage"`
	// Name is unique within its stage.
	Name string `json:"name"`
	// Observer reports whether the hook is only recorded. Any other hook is a gate, and
	// a gate that fails blocks.
	Observer bool `json:"observer,omitempty"`
	// Tools are patterns for the tools of the calls that the hook covers, in which a
	// star matches any characters; none means every tool.
	Tools []string `json:"tools,omitempty"`
}

// Dispatch is the order in which the calls of one answer run.
type Dispatch string

// The dispatch modes.
const (
	// OrderedGroups runs adjacent concurrency-safe reads together and
	// everything else alone, in the model's order.
	OrderedGroups Dispatch = "ordered-groups"
	// ParallelFirst runs every concurrency-safe read together, then the rest
	// one at a time (Alfred).
	ParallelFirst Dispatch = "parallel-first"
	// ByResource also runs calls together whose resources do not overlap. A read that
	// does not declare its resources may read anything.
	ByResource Dispatch = "by-resource"
	// ParallelAll runs all together, except that overlapping resources and
	// exclusive tools take turns (ALDO).
	ParallelAll Dispatch = "parallel-all"
	// Serial runs one call at a time.
	Serial Dispatch = "serial"
)

// Defaults of texts and counts.
const (
	DefaultNudge = "You made no tool call and the task is not known to be done. " +
		"Go on with the next step, or say what the task asks you to say when it is done."
	emptyNudge = "Your last answer was empty. Continue with the task: call a tool, " +
		"or give your answer as text."
	cutNudge = "Your last answer was cut off at the output limit. " +
		"Continue exactly where you stopped, in smaller pieces."
	malformedNudge = "Your last tool call could not be read. " +
		"Make the call again with arguments that match the tool's schema."

	// DefaultMaxNudges is the default of MaxNudges. ALDO's loop has no such bound but
	// the cycle cap.
	DefaultMaxNudges = 3

	// DefaultFailureThreshold ends a run that only fails, each time in another way, so
	// that no repetition is detected. A healthy run has a success among so many calls;
	// one mistake may fail many calls of one answer before the model sees it, so they
	// must come from DefaultFailureAnswers answers.
	DefaultFailureThreshold = 20
	DefaultFailureAnswers   = 2

	maxPauses      = 5
	maxTruncations = 4
)

// WithDefaults fills unset values with the defaults of an agent file without an
// iteration block.
func (c Config) WithDefaults() Config {
	c.Limits = c.Limits.WithDefaults()
	c.OnLimit = cmp.Or(c.OnLimit, OnLimitStopped)
	c.OnNoToolCall = cmp.Or(c.OnNoToolCall, NoToolCallFinish)
	c.NudgeText = cmp.Or(c.NudgeText, DefaultNudge)
	c.MaxNudges = max(cmp.Or(c.MaxNudges, DefaultMaxNudges), 0)
	if c.FailureThreshold == 0 {
		c.FailureThreshold, c.FailureAnswers = DefaultFailureThreshold, DefaultFailureAnswers
	}
	c.FailureThreshold = max(c.FailureThreshold, 0)
	c.Dispatch = cmp.Or(c.Dispatch, OrderedGroups)
	c.Approve = cmp.Or(c.Approve, ApproveAsk)
	if c.Approve == ApproveWait {
		c.Approvals.Seconds = cmp.Or(c.Approvals.Seconds, DefaultWaitSeconds)
	}
	return c
}

// Start returns the first event of a run: the configuration pinned, and the task as the
// first user message. The error wraps [compact.ErrNoRoom] if they leave the model no
// room to work in, and [ErrInput] if the task is not a valid user message.
func Start(cfg Config, input *llm.Message) (event.RunStarted, error) {
	return StartFenced(cfg, input, nil)
}

// StartFenced is [Start] for a run with a fence around untrusted text, so that the
// explanation of the fence counts against the model's context. Without a nonce the
// driver chooses one; a nil fence marks nothing.
func StartFenced(cfg Config, input *llm.Message, f *event.Fence) (event.RunStarted, error) {
	input, err := userMessage(input)
	if err != nil {
		return event.RunStarted{}, err
	}
	if err := cfg.fits(input, f != nil); err != nil {
		return event.RunStarted{}, fmt.Errorf("agent: %w", err)
	}
	cfg.WindowCaps = true
	raw, err := json.Marshal(cfg)
	if err != nil {
		return event.RunStarted{}, fmt.Errorf("agent: encode config: %w", err)
	}
	return event.RunStarted{
		Vocabulary: event.Version, Machine: Version, Projection: history.Version, Policy: cfg.Policy.Version(),
		Kind: Kind, Config: raw, Input: input, Fence: f,
	}, nil
}

// fits checks that system text, tools and task leave room to work in.
func (c *Config) fits(input *llm.Message, fenced bool) error {
	floor := compact.Overhead(prompt(c.System, fenced), c.namedTools())
	if input != nil {
		floor += compact.Message(input)
	}
	for _, t := range c.Targets {
		window, known := c.Compact.WindowFor(t.ContextWindow)
		if !known {
			continue
		}
		if err := c.Compact.Fits(floor, window); err != nil {
			return fmt.Errorf("%s: %w", t.Model, err)
		}
	}
	return nil
}

// conditionBudget is the index of the first condition on the money, or -1.
func (c *Config) conditionBudget() int {
	return slices.IndexFunc(c.Conditions, func(cond stop.Condition) bool { return cond.Kind.OfMoney() })
}

// prompt returns the system text of a run with a fence: it is the same for every run of
// the same agent, whatever the nonce.
func prompt(system string, fenced bool) string {
	switch {
	case !fenced:
		return system
	case system == "":
		return fence.Notice
	}
	return system + "\n\n" + fence.Notice
}
