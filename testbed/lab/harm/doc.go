// Package harm measures what guests cost home users, and what helps: the jobs of a site
// with those of another one as guests, under each policy and cap, and the same site in a
// federation whose users also gain. Blocked times and promises are those that the engines
// count, delays those of package sitesched/harm, as a daemon tells them.
package harm
