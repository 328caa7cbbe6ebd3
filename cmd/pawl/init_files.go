package main

// firstAgent is the file of a first agent; its name and its model are put in.
const firstAgent = `# An agent. 'pawl check agent.yaml' validates this file, 'pawl schema agent'
# prints its schema for editors, and 'pawl models' lists models to put below.
identity:
  name: %s
  version: 0.1.0
model_policy:
  primary: {model: %s}
  budget: {usd_per_run: 1.00}
prompt:
  system_file: prompt.md
tools:
  # fs.write, fs.edit and shell.exec let it change things. Where 'pawl doctor'
  # finds no sandbox, a command asks first unless it only looks or edits.
  allow: [fs.read, fs.list, fs.glob, fs.grep]
budgets:
  max_wall_time_seconds: 600
`

const firstPrompt = `You help with the files of the working directory. Look before you answer: list
and read what the question is about, and name the files that your answer rests on.
Say so when something cannot be found out from them.
`

const firstAnswers = `# Answers of a scripted model: it needs no key and says the same every time. The
# tools that it calls are real. Use it with --model scripted/answers.yaml.
- text: I look at what is here.
  tool_calls:
    - {name: fs.list, arguments: {path: .}}
- text: >-
    I have listed the directory; the list is in this run's journal ('pawl runs
    events RUN' prints it). A real model would now answer your question: put its
    name into agent.yaml.
`
