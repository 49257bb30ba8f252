#!/bin/busybox sh
# What registry.example.com/tools:1 of the guide has: it says which containers it sees.
echo containers: $(/bin/busybox ls /c)
