// SPDX-License-Identifier: Apache-2.0

// Package network has the commands about the network: ip, ss, ping, nslookup, wget, nc, openssl, httpd and their kind.
//
// Its law: nothing is changed, only looked at and talked to; numbers stay numbers, as names would need a server that
// may be what is broken; a command that may not do something says which capability it lacks. [Applets] lists them.
package network

import "github.com/wherryproject/wherry/toolbox/internal/applet"

// Applets returns the package's commands.
func Applets() []applet.Applet {
	return []applet.Applet{
		{Name: "curl", Usage: "URL...", Short: "Get or send by HTTP", Run: curl},
		{Name: "dig", Usage: "[@SERVER] NAME [TYPE]",
			Short: "Ask a name server; -x ADDRESS asks for its name, +short prints answers only", Names: true,
			Run: dig},
		{Name: "host", Usage: "NAME [SERVER]", Short: "Find addresses of a name", Names: true, Run: nslookup},
		{Name: "httpd", Usage: "[FOLDER]", Short: "Serve the files of a folder by HTTP", Run: httpd},
		{Name: "ifconfig", Usage: "[INTERFACE]", Short: "Show the interfaces: as ip addr", Names: true, Run: ifconfig},
		{Name: "ip", Usage: "addr | link | route | neigh [show] [dev INTERFACE]",
			Short: "Show addresses, interfaces, routes and neighbours", Names: true, Run: ip},
		{Name: "nc", Usage: "HOST PORT | -l PORT", Short: "Connect standard input and output to a port", Run: nc},
		{Name: "netstat", Short: "List sockets, or with -r routes", Names: true, Run: netstat},
		{Name: "nslookup", Usage: "NAME [SERVER]", Short: "Find addresses of a name, or the name of an address",
			Names: true, Run: nslookup},
		{Name: "openssl", Usage: "s_client | x509 | version", Short: "Look at the TLS of a server, or at a certificate",
			Names: true, Run: openssl},
		{Name: "ping", Usage: "HOST", Short: "Ask a machine for a sign of life", Names: true, Run: ping},
		{Name: "route", Short: "Show the routes: as ip route", Names: true, Run: routes},
		{Name: "ss", Usage: "[state STATE] [FILTER]", Short: "List sockets, or with -s count them", Names: true,
			Run: ss},
		{Name: "telnet", Usage: "HOST PORT", Short: "Connect to a port: as nc", Run: nc},
		{Name: "traceroute", Usage: "HOST", Short: "Show the routers on the way to a machine", Names: true,
			Run: traceroute},
		{Name: "wget", Usage: "URL...", Short: "Get files by HTTP", Run: wget},
	}
}
