package wan

import (
	"fmt"
)

// A Scope selects ways of links by the sites at their ends.
type Scope struct {
	// From and To are names of sites; empty stands for every site.
	From, To string
	// OneWay selects only the bytes from From to To; else also those from To
	// to From. It does not matter which of them dials.
	OneWay bool
}

// Everything selects all ways of all links.
func Everything() Scope { return Scope{} }

// Between selects both ways between two sites.
func Between(a, b string) Scope { return Scope{From: a, To: b} }

// Around selects everything from and to one site.
func Around(site string) Scope { return Scope{From: site} }

// OnlyFrom selects the bytes that from sends to to.
func OnlyFrom(from, to string) Scope { return Scope{From: from, To: to, OneWay: true} }

// selects reports whether the scope includes bytes from one site to another.
func (s Scope) selects(from, to string) bool {
	fits := func(want, name string) bool { return want == "" || want == name }
	return fits(s.From, from) && fits(s.To, to) || !s.OneWay && fits(s.From, to) && fits(s.To, from)
}

// String returns the scope as a command has it.
func (s Scope) String() string {
	if s == Everything() {
		return "all"
	}
	name := func(n string) string {
		if n == "" {
			return "*"
		}
		return n
	}
	text := fmt.Sprintf("%s %s", name(s.From), name(s.To))
	if s.OneWay {
		text += " oneway"
	}
	return text
}
