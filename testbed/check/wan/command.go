package wan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrBadCommand is returned when a line is not a command.
var ErrBadCommand = errors.New("not a command, try help")

// help is the answer to "help".
const help = `cut A B [oneway] [reset]   stop what travels between two sites, or from A to B
heal A B [oneway]          let it pass again
delay A B 20ms [oneway]    change how long it takes, each way
jitter A B 5ms [oneway]    change what is added to that at random
rate A B 10M [oneway]      change the bytes a second, each way; 0: no limit
status                     a line for each link
help                       this text
In place of A and B: "all", or "*" for either of them.
`

// A command is a line of a script.
type command struct {
	verb  string
	scope Scope
	mode  Mode
	delay time.Duration
	rate  int64
}

// parseCommand reads a line. The error wraps [ErrBadCommand].
func parseCommand(line string) (command, error) {
	words := strings.Fields(line)
	if len(words) == 0 {
		return command{}, fmt.Errorf("empty line: %w", ErrBadCommand)
	}
	c := command{verb: words[0]}
	bad := func(reason string) (command, error) {
		return command{}, fmt.Errorf("%.64q: %s: %w", line, reason, ErrBadCommand)
	}
	words = words[1:]
	if c.verb == "status" || c.verb == "help" {
		if len(words) > 0 {
			return bad("stands alone")
		}
		return c, nil
	}
	if !slices.Contains([]string{"cut", "heal", "delay", "jitter", "rate"}, c.verb) {
		return bad("unknown verb")
	}
	words, reason := c.parseScope(words)
	if reason == "" {
		words, reason = c.parseValue(words)
	}
	if reason != "" {
		return bad(reason)
	}
	for _, word := range words {
		switch {
		case word == "oneway" && !c.scope.OneWay && c.scope != Everything():
			c.scope.OneWay = true
		case word == "reset" && c.verb == "cut" && c.mode != Reset:
			c.mode = Reset
		default:
			return bad(fmt.Sprintf("%.32q does not belong here", word))
		}
	}
	return c, nil
}

// parseScope takes the sites from the beginning of words. It returns the
// other words, or what is wrong.
func (c *command) parseScope(words []string) (rest []string, reason string) {
	if len(words) > 0 && words[0] == "all" {
		return words[1:], ""
	}
	if len(words) < 2 {
		return nil, "two sites are missing"
	}
	for i, name := range []*string{&c.scope.From, &c.scope.To} {
		if words[i] == "*" {
			continue
		}
		if err := checkName(words[i]); err != nil {
			return nil, fmt.Sprintf("site %.70q: %v", words[i], err)
		}
		*name = words[i]
	}
	return words[2:], ""
}

// parseValue takes the value of a delay, jitter or rate.
func (c *command) parseValue(words []string) (rest []string, reason string) {
	if c.verb == "cut" || c.verb == "heal" {
		return words, ""
	}
	if len(words) == 0 {
		return nil, "the value is missing"
	}
	if c.verb == "rate" {
		n, err := parseRate(words[0])
		if err != nil {
			return nil, err.Error()
		}
		c.rate = n
		return words[1:], ""
	}
	d, err := time.ParseDuration(words[0])
	if err == nil {
		err = checkDelay(d)
	}
	if err != nil {
		return nil, fmt.Sprintf("%.32q is no delay from 0 to 1 min such as 20ms", words[0])
	}
	c.delay = d
	return words[1:], ""
}

// parseRate reads a number of bytes a second; k, M and G stand for thousands,
// millions and billions.
func parseRate(text string) (int64, error) {
	digits, factor := text, int64(1)
	for suffix, f := range map[string]int64{"k": 1e3, "M": 1e6, "G": 1e9} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			digits, factor = rest, f
		}
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%.32q is no rate such as 500k or 10M", text)
	}
	return int64(n) * factor, nil
}

// Do carries out a line of text, as scripts send it to the control socket:
//
//	cut A B [oneway] [reset]     heal A B [oneway]     status     help
//	delay A B 20ms [oneway]      jitter A B 5ms [oneway]
//	rate A B 10M [oneway]
//
// In place of A and B, "all" stands for everything and "*" for any site. It
// returns text for the caller, whole lines or none. Errors: [ErrBadCommand],
// and those of the methods.
func (p *Proxy) Do(line string) (string, error) {
	c, err := parseCommand(line)
	if err != nil {
		return "", err
	}
	switch c.verb {
	case "help":
		return help, nil
	case "status":
		var b strings.Builder
		for _, s := range p.Stats() {
			b.WriteString(s.String() + "\n")
		}
		return b.String(), nil
	case "cut":
		err = p.Cut(c.scope, c.mode)
	case "heal":
		err = p.Heal(c.scope)
	case "delay":
		err = p.SetDelay(c.scope, c.delay)
	case "jitter":
		err = p.SetJitter(c.scope, c.delay)
	case "rate":
		err = p.SetRate(c.scope, c.rate)
	}
	return "", err
}
