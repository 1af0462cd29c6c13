package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.html
var pageText string

// WriteHTML writes the page as one file that loads nothing from elsewhere. The
// error wraps [ErrPlot] if a plot cannot be drawn; then nothing was written.
func (p *Page) WriteHTML(w io.Writer) error {
	drawn := make(map[*Plot]template.HTML)
	for s := range p.Sections {
		for i := range p.Sections[s].Plots {
			plot := &p.Sections[s].Plots[i]
			svg, err := plot.inline(fmt.Sprintf("-%d-%d", s, i))
			if err != nil {
				return err
			}
			drawn[plot] = template.HTML(svg) //nolint:gosec // Made here; its texts are escaped.
		}
	}
	style := shapes(".plot") + colours(".plot ", false) + "@media (prefers-color-scheme:dark){" + colours(".plot ", true) + "}"
	t, err := template.New("page").Funcs(template.FuncMap{
		"draw":  func(s, i int) template.HTML { return drawn[&p.Sections[s].Plots[i]] },
		"style": func() template.CSS { return template.CSS(style) }, //nolint:gosec // Made here of constants.
		"sign":  Tone.sign,
	}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("template of the page: %w", err)
	}
	return t.Execute(w, p)
}

// sign stands beside a text of the tone, for those who do not see colours.
func (t Tone) sign() string {
	switch t {
	case Good:
		return "✓ "
	case Bad:
		return "✗ "
	}
	return ""
}
