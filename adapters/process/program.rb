# Runs in the probed ruby. It reads the request from descriptor 3, and what is proven goes out on descriptor 4, marked with
# a nonce that no module sees.
lambda do
  request = IO.for_fd(3, "rb", autoclose: false).read.split("\0", -1)
  nonce, count = request[0], request[1].to_i
  path, names = request[2, count], request[(2 + count)..-1]
  [path, names].each { |l| l.each { |s| s.force_encoding(Encoding::UTF_8) } }
  out = IO.for_fd(4, "wb", autoclose: false)
  out.sync = true
  [3, 4].each { |fd| IO.for_fd(fd, autoclose: false).close_on_exec = true }
  me = Process.pid
  leave = Process.method(:exit!)

  say = lambda do |text|
    leave.call(1) if Process.pid != me # a fork made by a module: only the first process may speak
    out.write("#{nonce} #{text}\n".b)
  end
  fail_at = lambda do |i, e|
    begin
      STDERR.puts(e.full_message(highlight: false))
      STDERR.flush
    rescue Exception
      nil
    end
    text = "#{e.class}: #{e.message}".b[0, 4096]
    say.call("fail #{i} " + text.gsub("\\") { "\\\\" }.gsub("\n") { "\\n" })
    leave.call(1)
  end
  # The program's own file is never run: it has to compile, and what it is sure to require by a literal name has to load.
  # What stands under a condition or beside a rescue may be meant to fail.
  literal = lambda do |args|
    args = args[1] while args.is_a?(Array) && %i[arg_paren args_add_block].include?(args[0])
    text = args.is_a?(Array) && args.size == 1 ? args[0] : nil
    text[1][1][1] if text.is_a?(Array) && text[0] == :string_literal && text[1].size == 2 && text[1][1][0] == :@tstring_content
  end
  follow = lambda do |node, file|
    return unless node.is_a?(Array)
    case node[0]
    when :if, :if_mod
      return unless node[1].flatten.include?("__FILE__") # run as the program, as it is
    when :unless, :unless_mod, :elsif, :else, :ifop, :case, :while, :while_mod, :until, :until_mod, :rescue_mod, :binary
      return
    when :bodystmt
      return if node[2]
    when :command
      name, args = node[1], node[2]
    when :method_add_arg
      name, args = node[1][1], node[2] if node[1][0] == :fcall
    end
    if name && (wanted = literal.call(args))
      require(File.expand_path(wanted, File.dirname(file))) if name[1] == "require_relative"
      require(wanted) if name[1] == "require"
    end
    node.each { |n| follow.call(n, file) }
  end
  check = lambda do |file|
    source = File.binread(file).force_encoding(Encoding::UTF_8)
    RubyVM::InstructionSequence.compile(source, file, file) if defined?(RubyVM::InstructionSequence)
    require "ripper"
    follow.call(Ripper.sexp(source, file), file)
  end

  say.call("up")
  $LOAD_PATH.unshift(*path)
  names.each_with_index do |name, i|
    say.call("load #{i}")
    begin
      name.start_with?("main:") ? check.call(name[5..-1]) : require(name)
    rescue Exception => e # also an exit: a module that ends the program did not load
      fail_at.call(i, e)
    end
  end
  say.call("done")
  leave.call(0) # at once: exit handlers and threads of the modules are no part of the question
end.call
