package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"kith/internal/job"
)

// NetworkConfig says how messages travel between sites. The zero value
// delivers all of them within the instant.
type NetworkConfig struct {
	// LinkConfig is that of every way that Links does not name.
	LinkConfig
	// Links are the ways that differ, each from one site to another: the way
	// back is another one.
	Links map[Way]LinkConfig
	// Detect is how long a site takes to notice that a stream is dead. Default 15 s.
	Detect time.Duration
	// Reconnect is how long two sites take to find each other again. Default 1 s.
	Reconnect time.Duration
	// Apart says of two sites that they never have a stream, whatever is cut or healed: neither
	// names the other. Nil for a stream between any two. Of many hosts that know one origin
	// alone nothing then grows with the square of their number.
	Apart func(a, b job.SiteID) bool
}

// Way is the way from one site to another.
type Way struct{ From, To job.SiteID }

// LinkConfig says how messages travel one way.
type LinkConfig struct {
	// Latency is the least time a message takes. Jitter is added at random as
	// Shape says.
	Latency, Jitter time.Duration
	Shape           Shape
	// Loss and Duplication are probabilities of a message on a stream that is
	// up; Reorder is that of a message that overtakes and is overtaken. A real
	// stream does none of these; the protocol survives them.
	Loss, Duplication, Reorder float64
}

// Shape is the distribution of what is added to a latency.
type Shape uint8

// The shapes.
const (
	// Uniform adds up to Jitter.
	Uniform Shape = iota
	// Exponential adds Jitter on average.
	Exponential
	// HeavyTail adds Jitter at the median, now and then much more: log-normal
	// with sigma 1, at most a hundred times Jitter.
	HeavyTail
)

// instant reports whether messages take no time and always arrive.
func (c *LinkConfig) instant() bool {
	return c.Latency == 0 && c.Jitter == 0 && c.Loss == 0 && c.Duplication == 0 && c.Reorder == 0
}

// delay draws how long a message takes.
func (c *LinkConfig) delay(rng *rand.Rand) time.Duration {
	if c.Jitter <= 0 {
		return c.Latency
	}
	jitter := float64(c.Jitter)
	switch c.Shape {
	case Exponential:
		return c.Latency + time.Duration(jitter*rng.ExpFloat64())
	case HeavyTail:
		return c.Latency + time.Duration(jitter*min(100, math.Exp(rng.NormFloat64())))
	}
	return c.Latency + time.Duration(rng.Int64N(int64(c.Jitter)))
}
