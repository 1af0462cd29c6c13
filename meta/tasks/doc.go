// Package tasks reads and makes what the tasks of a bag run ([kithv1.BagPayload]).
//
// The origin keeps a payload with the template and what the tasks differ by; a [Bag] is one
// that was read. A host is given one for each bundle, which [Bag.Bundle] makes: the
// template, and the rows of the bundle's tasks. That is a Bag, too, of which only those
// tasks can be had. [Bag.Task] is what one task runs.
package tasks
