# The tool text.count: the result may be text as well. It counts in the JSON value
# as it came, whose one argument is a text: {"text": "..."}
text=$(sed 's/^{ *"text" *: *"//; s/"} *$//')
if [ -z "$text" ]; then
  echo "the text is empty" >&2
  exit 1
fi
echo "${#text} characters, $(echo "$text" | wc -w | tr -d ' ') words"
