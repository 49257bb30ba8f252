// SPDX-License-Identifier: Apache-2.0

// Web is the first-light example's main container: a web server for /site that exits on SIGTERM.
package main
