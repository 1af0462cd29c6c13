// Package params makes the tasks of a bag differ: templates, and where the values in
// them come from.
//
// A bag is one job with {{name}} in some of its texts (its command, arguments, values of
// its environment, names of its outputs), and a source of rows. Task n gets row n: for
// each parameter a value. [Compile] reads the texts, [Texts.Expand] fills a row in, once,
// so that braces in a value mean nothing. Scripts are not templates; [Task.Environment]
// tells them the row.
//
// The sources are [NoRows] (all that tells tasks apart is their index), [Rows] (written
// out in the request), a [Matrix] (every combination of some lists, never expanded) and a
// [Table] (a file, of which any row is found by a sparse index of offsets).
//
// What comes from outside is bounded, and an error names the field, list, line or
// column, the value, and what to write instead.
package params
