// Package backup is the one file in which a site's facts are kept elsewhere: whose they are and
// when it was made, an image of the file of facts (see [kith/store/boltstore.Image]), and a
// checksum over all of it. It has what users have had the site run, so it is as secret as the data
// folder is.
package backup
