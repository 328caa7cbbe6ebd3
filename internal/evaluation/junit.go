package evaluation

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// The elements of a JUnit report.
type (
	junitSuites struct {
		XMLName xml.Name   `xml:"testsuites"`
		Suite   junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitFailure `xml:"failure,omitempty"`
		Skipped *struct{}     `xml:"skipped,omitempty"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes the report in the format that CI systems read: a test for each case,
// which fails if a smaller share of its runs passed than the threshold.
func (r *Report) JUnit(w io.Writer) error {
	s := junitSuite{Name: r.Suite, Tests: len(r.Cases), Time: seconds(r.Seconds)}
	for _, c := range r.Cases {
		one := junitCase{Name: c.Name, Class: r.Suite, Time: seconds(c.Seconds)}
		var why []string
		for _, t := range c.Trials {
			one.Out += fmt.Sprintf("run %s: USD %.4f, %s s\n", t.Run, t.USD, seconds(t.Seconds))
			if !t.Pass {
				why = append(why, t.Run+": "+t.Why())
			}
		}
		switch {
		case c.Runs == 0:
			one.Skipped, s.Skipped = &struct{}{}, s.Skipped+1
		case c.Share() < r.Threshold-rounding:
			one.Failure = &junitFailure{fmt.Sprintf("%d of %d runs passed", c.Passed, c.Runs), strings.Join(why, "\n")}
			s.Failures++
		}
		s.Cases = append(s.Cases, one)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(junitSuites{Suite: s}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func seconds(s float64) string { return fmt.Sprintf("%.3f", s) }
