// SPDX-License-Identifier: Apache-2.0

// Page is the first-light example's init container: it writes the page that the web server serves, and exits.
package main
