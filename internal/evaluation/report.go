package evaluation

import "github.com/pawlrun/pawl/internal/files/suite"

// Report is the result of an evaluation.
type Report struct {
	Suite      string `json:"suite"`
	File       string `json:"file"`
	Evaluation string `json:"evaluation"`
	// OK reports whether the share of runs that passed reaches the threshold.
	OK        bool    `json:"ok"`
	Threshold float64 `json:"threshold"`
	// Stopped is why runs are missing, "" if all are decided.
	Stopped string `json:"stopped,omitempty"`
	Sum
	// Left counts the runs that are not decided.
	Left    int      `json:"left,omitempty"`
	Seconds float64  `json:"seconds"`
	Cases   []Result `json:"cases"`
}

// Sum adds up runs.
type Sum struct {
	Runs   int `json:"runs"`
	Passed int `json:"passed"`
	// PassAt1 and PassAtAll estimate the probability that at least one of k runs passes,
	// for k = 1 and for k = the number of runs.
	PassAt1   float64 `json:"passAt1"`
	PassAtAll float64 `json:"passAtAll"`
	// USD is the cost of the runs, and JudgeUSD that of their judges.
	USD      float64 `json:"usd"`
	JudgeUSD float64 `json:"judgeUsd,omitempty"`
}

// Share returns the share of the runs that passed.
func (s Sum) Share() float64 {
	if s.Runs == 0 {
		return 0
	}
	return float64(s.Passed) / float64(s.Runs)
}

// Result is the result of a case.
type Result struct {
	Name string `json:"name"`
	Sum
	// Seconds is the mean time of a run.
	Seconds float64 `json:"seconds"`
	Trials  []Trial `json:"trials"`
}

// Trial is the result of one run.
type Trial struct {
	Run   string `json:"run"`
	Pass  bool   `json:"pass"`
	State string `json:"state"`
	// OK and Reason are those of the outcome.
	OK       bool      `json:"ok"`
	Reason   string    `json:"reason,omitempty"`
	Problem  string    `json:"problem,omitempty"`
	Cycles   int       `json:"cycles"`
	Seconds  float64   `json:"seconds"`
	USD      float64   `json:"usd"`
	JudgeUSD float64   `json:"judgeUsd,omitempty"`
	Text     string    `json:"text"`
	Verdicts []Verdict `json:"verdicts,omitempty"`
}

// Verdict is the result of one evaluator.
type Verdict struct {
	Evaluator string  `json:"evaluator"`
	Pass      bool    `json:"pass"`
	Score     float64 `json:"score"`
	Reason    string  `json:"reason"`
	// Run is the run of the judge, and USD what it cost.
	Run string  `json:"run,omitempty"`
	USD float64 `json:"usd,omitempty"`
}

// Why returns why a run did not pass, "" if it did.
func (t Trial) Why() string {
	switch {
	case t.Pass:
		return ""
	case t.Problem != "":
		return t.Problem
	}
	for _, v := range t.Verdicts {
		if !v.Pass {
			return v.Reason
		}
	}
	return "it ended as " + t.Reason
}

// rounding is the error of a share that is written as a fraction.
const rounding = 1e-9

// report adds up the decided trials.
func (e *Evaluation) report(trials []trial, decided []*Trial) *Report {
	r := &Report{Suite: e.Suite.Name, File: e.Suite.File, Evaluation: e.token, Threshold: e.Suite.Least()}
	at := map[*suite.Case]int{}
	for i, t := range trials {
		if _, has := at[t.c]; !has {
			at[t.c] = len(r.Cases)
			r.Cases = append(r.Cases, Result{Name: t.c.Name, Trials: []Trial{}})
		}
		if decided[i] == nil {
			r.Left++
			continue
		}
		of := &r.Cases[at[t.c]]
		of.Trials = append(of.Trials, *decided[i])
	}
	scored := 0
	for i := range r.Cases {
		c := &r.Cases[i]
		c.add()
		r.Runs, r.Passed, r.USD, r.JudgeUSD = r.Runs+c.Runs, r.Passed+c.Passed, r.USD+c.USD, r.JudgeUSD+c.JudgeUSD
		if c.Runs > 0 {
			scored++
			r.PassAt1, r.PassAtAll = r.PassAt1+c.PassAt1, r.PassAtAll+c.PassAtAll
		}
	}
	if scored > 0 {
		r.PassAt1, r.PassAtAll = r.PassAt1/float64(scored), r.PassAtAll/float64(scored)
	}
	switch {
	case r.Left > 0 && e.Budget.Exhausted():
		r.Stopped = "budget"
	case r.Left > 0:
		r.Stopped = "interrupted"
	}
	r.OK = r.Stopped == "" && r.Share() >= r.Threshold-rounding
	return r
}

// add adds up the trials of a case.
func (r *Result) add() {
	for _, t := range r.Trials {
		r.Runs, r.USD, r.JudgeUSD = r.Runs+1, r.USD+t.USD, r.JudgeUSD+t.JudgeUSD
		r.Seconds += t.Seconds
		if t.Pass {
			r.Passed++
		}
	}
	if r.Runs > 0 {
		r.Seconds /= float64(r.Runs)
		r.PassAt1, r.PassAtAll = passAt(r.Runs, r.Passed, 1), passAt(r.Runs, r.Passed, r.Runs)
	}
}

// passAt estimates, from the results of n runs of which c passed, how likely at least
// one of k runs passes. It is the share of the choices of k of the n runs that contain
// one that passed.
func passAt(n, c, k int) float64 {
	none := 1.0
	for i := range k {
		none *= max(float64(n-c-i)/float64(n-i), 0)
	}
	return 1 - none
}
