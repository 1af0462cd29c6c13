package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"kith/internal/units"
)

// field is a field of the configuration as the file writes it.
type field struct {
	standard any // the default
	get      func() any
	put      func(v any)
	// read takes a value of the file up, or says what to give instead.
	read func(v any) (remedy string)
	// write returns a value as TOML.
	write func(v any) string
	// check says what to give instead of the present value, "" if it is right.
	check func() (remedy string)
}

// erased returns the field without its type.
func (f field) erased() field { return f }

// typed is a field of a known type.
type typed[T any] struct{ field }

// fieldOf makes a field of p. convert turns what the file says into its type,
// and is false for something of another kind.
func fieldOf[T any](p *T, standard T, takes string, convert func(v any) (T, bool), write func(T) string) typed[T] {
	return typed[T]{field{
		standard: standard,
		get:      func() any { return *p },
		put:      func(v any) { *p = v.(T) },
		read: func(v any) string {
			converted, ok := convert(v)
			if !ok {
				return "give " + takes
			}
			*p = converted
			return ""
		},
		write: func(v any) string { return write(v.(T)) },
		check: func() string { return "" },
	}}
}

func text(p *string, standard string) typed[string] {
	return fieldOf(p, standard, `text in quotes, such as "word"`, as[string], quote)
}

func list(p *[]string) typed[[]string] {
	return fieldOf(p, nil, `a list of texts, such as ["one", "two"]`, func(v any) ([]string, bool) {
		values, ok := v.([]any)
		var texts []string
		for _, v := range values {
			s, isText := v.(string)
			texts, ok = append(texts, s), ok && isText
		}
		return texts, ok
	}, func(texts []string) string {
		quoted := make([]string, len(texts))
		for i, s := range texts {
			quoted[i] = quote(s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	})
}

func truth(p *bool, standard bool) typed[bool] {
	return fieldOf(p, standard, "true or false, without quotes", as[bool], strconv.FormatBool)
}

func whole[T int | int32 | int64](p *T, standard T) typed[T] {
	return fieldOf(p, standard, "a whole number, without quotes", func(v any) (T, bool) {
		n, ok := v.(int64)
		return T(n), ok && int64(T(n)) == n
	}, func(n T) string { return strconv.FormatInt(int64(n), 10) })
}

func fraction(p *float64, standard float64) typed[float64] {
	return fieldOf(p, standard, "a number, without quotes", func(v any) (float64, bool) {
		if n, ok := v.(int64); ok {
			return float64(n), true
		}
		return as[float64](v)
	}, func(f float64) string {
		s := strconv.FormatFloat(f, 'f', -1, 64)
		if f == math.Trunc(f) {
			s += ".0"
		}
		return s
	})
}

func span(p *time.Duration, standard time.Duration) typed[time.Duration] {
	return fieldOf(p, standard, `a duration in quotes, such as "5s" or "1h30m"`, func(v any) (time.Duration, bool) {
		s, ok := v.(string)
		d, err := units.ParseDuration(s)
		return d, ok && err == nil
	}, func(d time.Duration) string { return strconv.Quote(units.FormatDuration(d)) })
}

func size(p *int64, standard int64) typed[int64] {
	return fieldOf(p, standard, `a size such as 1048576, "512MiB" or "10GB"`, func(v any) (int64, bool) {
		if n, ok := v.(int64); ok {
			return n, true
		}
		s, ok := v.(string)
		n, err := units.ParseBytes(s)
		return n, ok && err == nil
	}, func(n int64) string {
		if s := units.FormatBytes(n); s != strconv.FormatInt(n, 10) {
			return strconv.Quote(s)
		}
		return strconv.FormatInt(n, 10)
	})
}

// choice is one of a few words.
func choice[T comparable](p *T, standard T, options ...T) typed[T] {
	words := make([]string, len(options))
	for i, o := range options {
		words[i] = fmt.Sprint(o)
	}
	f := fieldOf(p, standard, orList(words), func(v any) (T, bool) {
		s, ok := v.(string)
		if i := slices.Index(words, s); ok && i >= 0 {
			return options[i], true
		}
		return *p, false
	}, func(o T) string { return strconv.Quote(fmt.Sprint(o)) })
	f.check = func() string {
		if !slices.Contains(options, *p) {
			return "give " + orList(words)
		}
		return ""
	}
	return f
}

// orList writes words as a sentence does: "a", "b" or "c".
func orList(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = strconv.Quote(w)
	}
	if len(quoted) < 2 {
		return strings.Join(quoted, "")
	}
	last := len(quoted) - 1
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}

// must adds a condition on the value.
func must[T any](f typed[T], check func(v T) (remedy string)) typed[T] {
	f.check = func() string { return check(f.get().(T)) }
	return f
}

// between adds bounds.
func between[T int | int32 | int64 | float64 | time.Duration](f typed[T], least, most T, remedy string) typed[T] {
	return must(f, func(v T) string {
		if !(v >= least && v <= most) {
			return remedy
		}
		return ""
	})
}

func as[T any](v any) (T, bool) {
	t, ok := v.(T)
	return t, ok
}

// quote writes a text as a TOML string.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
