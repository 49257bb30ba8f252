// SPDX-License-Identifier: Apache-2.0

// Package fail is what happens at a failpoint. A place is armed by gofail's terms in $GOFAIL_FAILPOINTS (PLACE=TERMS,
// separated by semicolons), of which these are understood, each with gofail's counts before it (3*off->1*return("die"):
// at the fourth pass):
//
//	return("die")     the process kills itself when the change has been made, as kill -9 does
//	return("before")  the same before the change: for calls of the runtime, where both differ
//	return("torn")    half of a file is written, then the process kills itself
//	return("error")   the change is not made, and fails
//	return("lost")    the change is made, and said to have failed
//
// What has happened is kept in the folder $FAILPOINTS_DIR, so that it happens once, however often processes are started
// again: a file for each place in done/, and in the file passed, if it exists, a line for every pass of every place.
// Without the folder nothing ever happens.
package fail
