#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The entry point of the example's PostgreSQL image: makes a database where there is none, whole or not at all, and serves it. Its
# variables are those of Docker's official image.
set -e
: "${PGDATA:=/var/lib/postgresql/data/pgdata}" "${POSTGRES_USER:=postgres}" "${POSTGRES_DB:=$POSTGRES_USER}"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
	: "${POSTGRES_PASSWORD:?set POSTGRES_PASSWORD}"
	rm -rf "$PGDATA.new"
	printf '%s\n' "$POSTGRES_PASSWORD" >/tmp/password
	initdb -D "$PGDATA.new" -U "$POSTGRES_USER" --pwfile=/tmp/password -A scram-sha-256 -E UTF8 --locale=C --no-instructions
	rm /tmp/password
	echo 'host all all all scram-sha-256' >>"$PGDATA.new/pg_hba.conf"
	[ "$POSTGRES_DB" = postgres ] || echo "CREATE DATABASE \"$POSTGRES_DB\"" | postgres --single -D "$PGDATA.new" postgres >/dev/null
	mv "$PGDATA.new" "$PGDATA"
fi
chmod 0700 "$PGDATA" # which a pod's fsGroup has opened to its group
exec postgres -D "$PGDATA" -c listen_addresses='*' -c unix_socket_directories=/tmp
