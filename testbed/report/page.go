package report

// Page is a report.
type Page struct {
	Title string `json:"title"`
	// Lead says in a few sentences what came out.
	Lead []string `json:"lead,omitempty"`
	// Figures are the few numbers to see first.
	Figures  []Figure  `json:"figures,omitempty"`
	Sections []Section `json:"sections"`
	// Foot says how the page can be made again.
	Foot string `json:"foot,omitempty"`
}

// Figure is a number shown large.
type Figure struct {
	Label string `json:"label"`
	Value string `json:"value"`
	// Hint is a line below, "" for none.
	Hint string `json:"hint,omitempty"`
	Tone Tone   `json:"tone,omitempty"`
}

// Section is a part of a page: its texts, then its tables, then its plots.
type Section struct {
	// Name is the anchor: lower case letters, digits and hyphens.
	Name   string   `json:"name"`
	Title  string   `json:"title"`
	Texts  []string `json:"texts,omitempty"`
	Tables []Table  `json:"tables,omitempty"`
	Plots  []Plot   `json:"plots,omitempty"`
}
