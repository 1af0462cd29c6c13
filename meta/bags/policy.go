package bags

// Policy is what users say of hosts and bags (spec 002 section 2.1). It is asked once for
// each bag and ask (section 2.6), and keeps neither value.
type Policy interface {
	// Judge says whether the asker may run tasks of the bag, and how much it should rather
	// than those of another bag: the higher rank goes first. A rank that is no number is 0.
	Judge(w *Work, a *Ask) (rank float64, yes bool)
}

// Anywhere is the policy of bags that state none: yes, with rank 0.
type Anywhere struct{}

// Judge implements [Policy].
func (Anywhere) Judge(*Work, *Ask) (float64, bool) { return 0, true }
