package report

// Table is a table. Every row has a cell for each column.
type Table struct {
	// Name is the anchor on a page: lower case letters, digits and hyphens.
	Name    string   `json:"name"`
	Title   string   `json:"title"`
	Caption string   `json:"caption,omitempty"`
	Columns []Column `json:"columns"`
	Rows    [][]Cell `json:"rows"`
}

// Column is a column of a table.
type Column struct {
	// Title has the unit in brackets, if there is one.
	Title string `json:"title"`
	// Right aligns to the right, for numbers.
	Right bool `json:"right,omitempty"`
}

// Tone is how a cell or a figure is to be taken.
type Tone string

// The tones. Each also differs by a sign, not by colour alone.
const (
	Plain Tone = ""
	Good  Tone = "good"
	Bad   Tone = "bad"
	Muted Tone = "muted"
)

// Cell is one field of a table.
type Cell struct {
	Text string `json:"text"`
	Tone Tone   `json:"tone,omitempty"`
}

// Add adds a row of plain texts.
func (t *Table) Add(texts ...string) {
	row := make([]Cell, len(texts))
	for i, text := range texts {
		row[i].Text = text
	}
	t.Rows = append(t.Rows, row)
}

// AddCells adds a row.
func (t *Table) AddCells(cells ...Cell) { t.Rows = append(t.Rows, cells) }
