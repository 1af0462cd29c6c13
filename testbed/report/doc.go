// Package report shows results to people: plots as SVG, tables, a page of HTML
// that needs nothing but itself, and Markdown.
//
// A [Page] is data: its sections, tables and plots are plain values that a
// program may also write as JSON. [Page.WriteHTML] renders it in light and in
// dark, as the reader's system asks for; [Plot.WriteSVG] renders one plot as a
// file of its own.
//
// The plots are drawn here because the usual library brings a dozen modules,
// cannot follow a dark page, and draws no hints under the pointer; what is
// needed is a few hundred lines. Series differ in colour, dash and marker, and
// the colours are those of Okabe and Ito, which colour-blind people tell apart.
package report
